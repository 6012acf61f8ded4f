import { useEffect, useState } from 'react';
import { createClient, type Order } from './api.ts';

const client = createClient({ session: true });

/** The open orders, now and after each change. `problem`: why they are not followed any more. */
export function useOrders(): { readonly orders: readonly Order[] | undefined; readonly problem: unknown } {
  const [orders, setOrders] = useState<readonly Order[]>();
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => {
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      for await (const list of client.orders.liveList({ status: 'open' }, { signal: stop.signal })) setOrders(list);
    };
    follow().catch((error: unknown) => {
      if (!stop.signal.aborted) setProblem(error);
    });
    return () => stop.abort();
  }, []);
  return { orders, problem };
}

export function OpenOrders() {
  const { orders, problem } = useOrders();
  if (problem !== undefined) return <p role="alert">{String(problem)}</p>;
  if (orders === undefined) return <p>Loading …</p>;
  return (
    <ul aria-label="Open orders">
      {orders.map(({ id, item, quantity }) => (
        <li key={id}>
          {quantity} × {item}
        </li>
      ))}
    </ul>
  );
}
