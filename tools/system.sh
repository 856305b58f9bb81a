#!/bin/sh
# Installs what pip cannot: `system.sh venv` for `make run`, `system.sh tests` for `make test`.
# Does nothing where everything is there already.
set -eu

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        echo "This needs administrator rights: $*" >&2
        exit 1
    fi
}

apt() {
    echo "Installing with apt-get: $*"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

has() { command -v "$1" >/dev/null; }

browser() {
    has chromium || has chromium-browser || has google-chrome || has google-chrome-stable ||
        ls "$HOME"/.cache/ms-playwright/chromium* "$HOME"/Library/Caches/ms-playwright/chromium* \
            "/Applications/Google Chrome.app" >/dev/null 2>&1
}

venv() {
    if has apt-get; then apt python3-venv; else
        echo "This Python has no 'ensurepip', so no virtual environment can be made. Install Python from python.org, or your system's package for 'venv'." >&2
        exit 1
    fi
}

# Debian's name for the browser is a package; Ubuntu's is a pointer to a snap that cannot be
# driven from a test, so there Playwright brings its own.
tests() {
    if has apt-get; then
        missing=
        browser || ! grep -q '^ID=debian' /etc/os-release || missing="$missing chromium"
        has node || missing="$missing nodejs"
        has fc-list || missing="$missing fontconfig"
        fc-list 2>/dev/null | grep -q 'NotoSansCJK' || missing="$missing fonts-noto-cjk"
        fc-list 2>/dev/null | grep -q 'NotoColorEmoji' || missing="$missing fonts-noto-color-emoji"
        # shellcheck disable=SC2086  # a list of words is meant
        [ -z "$missing" ] || apt $missing
        browser || as_root .venv/bin/python -m playwright install-deps chromium
        browser || .venv/bin/python -m playwright install chromium
        return
    fi
    has node || {
        echo "The tests of the JavaScript need Node 20 or newer: install it (macOS: brew install node) and run this again." >&2
        exit 1
    }
    browser || {
        echo "The browser tests need Chromium or Chrome: install one, or run .venv/bin/python -m playwright install chromium, and run this again." >&2
        exit 1
    }
}

"$1"
