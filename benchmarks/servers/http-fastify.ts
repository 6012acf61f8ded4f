// Bare Fastify, doing the same by hand: the credential, the scope, the schemas, the output columns.
import type { AddressInfo } from 'node:net';
import { fastify as createFastify } from 'fastify';
import { serving } from '../harness/server-process.ts';
import { createOrder, findOrder, OrderId, OrderIn, userOf, type OrderRow } from './orders.ts';

const server = createFastify();
const scopes = ['orders:*'];

function admit(needed: string) {
  return (
    request: { headers: Record<string, unknown> },
    reply: { code(status: number): { send(body: object): void } },
    done: () => void,
  ) => {
    if (userOf(request.headers['authorization'] as string | undefined) === null) return reply.code(401).send({ code: 'not_authenticated' });
    const resource = `${needed.split(':', 1)[0]}:*`;
    if (!scopes.some((scope) => scope === '*' || scope === needed || scope === resource))
      return reply.code(403).send({ code: 'permission_denied' });
    done();
  };
}

const columns = ({ id, customer, total, status, created_at }: OrderRow) => ({ id, customer, total, status, created_at });

server.get('/v1/orders/:id', { onRequest: admit('orders:read') }, (request, reply) => {
  const params = OrderId.safeParse(request.params);
  if (!params.success) return reply.code(422).send({ code: 'validation_error', errors: params.error.issues });
  const order = findOrder(params.data.id);
  if (order === undefined) return reply.code(404).send({ code: 'not_found' });
  return reply.send(columns(order));
});

server.post('/v1/orders', { onRequest: admit('orders:write') }, (request, reply) => {
  const body = OrderIn.safeParse(request.body);
  if (!body.success) return reply.code(422).send({ code: 'validation_error', errors: body.error.issues });
  return reply.code(201).send(columns(createOrder(body.data)));
});

await server.listen({ port: 0, host: '127.0.0.1' });
serving((server.server.address() as AddressInfo).port);
