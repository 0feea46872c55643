"""A small transformer that reads tokens: made on the spot, nothing is downloaded."""

from __future__ import annotations

import torch

#: numbers that stand for a token inside the network
WIDTH = 32


class Language(torch.nn.Module):
    """The log-likelihood of the tokens after the first ``given`` of each text, divided by their number."""

    def __init__(self, vocabulary: int, length: int, given: int):
        super().__init__()
        torch.manual_seed(0)
        self.given = given
        self.tokens = torch.nn.Embedding(vocabulary, WIDTH)
        self.places = torch.nn.Parameter(0.1 * torch.randn(length, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, vocabulary)

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        """Of each token, what may follow."""
        length = tokens.shape[1]
        hidden = self.tokens(tokens) + self.places[:length]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.body(hidden, mask=mask, is_causal=True))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """One number for each text."""
        tokens = tokens.long()
        logp = torch.log_softmax(self.logits(tokens[:, :-1]), -1)
        each = logp.gather(-1, tokens[:, 1:, None])[..., 0]
        return each[:, self.given - 1 :].mean(1)


def pretrained(net: Language, tokens: torch.Tensor, steps: int) -> Language:
    """The network after some steps of maximum likelihood."""
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
    numbers = torch.Generator().manual_seed(0)
    for _ in range(steps):
        rows = torch.randint(len(tokens), (64,), generator=numbers)
        loss = -net(tokens[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net
