"""Prices of a shopping basket."""


def total(prices, discount=0):
    """The sum of the prices, less a discount in percent."""
    subtotal = sum(prices)
    return subtotal - discount
