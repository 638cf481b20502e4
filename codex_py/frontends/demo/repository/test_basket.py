import unittest

from basket import total


class BasketTest(unittest.TestCase):
    def test_prices_add_up(self):
        self.assertEqual(total([2, 3, 5]), 10)

    def test_a_discount_is_a_percentage(self):
        self.assertEqual(total([10, 30], discount=25), 30)


if __name__ == "__main__":
    unittest.main()
