"""One model on several processes: what goes where, what they tell each other, and what it costs.

Everything here is done for real: processes of their own hold their own tensors and speak
through torch.distributed. The parts without torch (``deal``, ``stages``, ``records``) say what
will happen before anything is started.
"""
