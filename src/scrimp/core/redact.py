"""What must never be shown: passwords and tokens inside addresses."""

import re


def hide_secrets(text: str) -> str:
    """`text` with the passwords of every URL in it, and what its query calls a key or token, as `***`.

    Rather too much is hidden than too little: a password may hold @ and /, and the address may be misspelt.
    """
    text = re.sub(r"(https?://)[^\s/]*@", r"\1***@", text)
    text = re.sub(r"(://[^\s:/@]*):\S*@", r"\1:***@", text)
    text = re.sub(r"^([^\s:/@]*):(?!//)\S*@", r"\1:***@", text)
    return re.sub(r"([?&][^=&\s]*(?:pass|pwd|secret|token|key)[^=&\s]*=)[^&\s]*", r"\1***", text, flags=re.IGNORECASE)
