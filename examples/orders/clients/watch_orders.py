"""Prints the open orders of a key's user as they change: API_KEY=… python3 watch_orders.py <address>"""

import os
import sys

import api


def watch(address: str, key: str) -> None:
    with api.Client(address, api_key=key) as client:
        for change in client.orders.live(status="open"):
            if change.event == "upsert":
                print(f"{change.item.quantity} x {change.item.item}: {change.item.total} {change.item.currency}", flush=True)
            elif change.event == "remove":
                print(f"{change.key} is not open any more", flush=True)


if __name__ == "__main__":
    try:
        watch(sys.argv[1], os.environ["API_KEY"])
    except KeyboardInterrupt:
        pass
