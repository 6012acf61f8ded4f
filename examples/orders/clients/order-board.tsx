import { QueryClient, QueryClientProvider, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { createClient } from './api.ts';
import { orderListLiveQuery, orderPayMutation } from './api.tanstack.ts';

const { connection } = createClient({ session: true });
const cache = new QueryClient();

/** A paid order leaves the list, whoever paid it. */
function Board() {
  const client = useQueryClient();
  const { data: orders, error } = useQuery(orderListLiveQuery(connection, client, { status: 'open' }));
  const pay = useMutation(orderPayMutation(connection, client));
  if (error !== null) return <p role="alert">{error.message}</p>;
  if (orders === undefined) return <p>Loading …</p>;
  return (
    <ul aria-label="Open orders">
      {orders.map(({ id, item, quantity }) => (
        <li key={id}>
          {quantity} × {item} <button onClick={() => pay.mutate({ id })}>Pay</button>
        </li>
      ))}
    </ul>
  );
}

export function OrderBoard() {
  return (
    <QueryClientProvider client={cache}>
      <Board />
    </QueryClientProvider>
  );
}
