// An application whose one route publishes an event: node api-process.ts <database url> <url of the receiver>
import type { AddressInfo } from 'node:net';
import * as z from 'zod';
import { tracing } from '../../src/contrib/tracing/index.ts';
import { createEndpoint } from '../../src/contrib/webhooks/endpoints/create-endpoint.ts';
import { publish, webhooks } from '../../src/contrib/webhooks/index.ts';
import { allowAny, Controller, createApp, migrateApp, route } from '../../src/index.ts';
import { LOOPBACK } from '../webhooks/loopback.ts';
import { recordSpans, reportSpans } from './spans.ts';

const [database = '', receiver = ''] = process.argv.slice(2);
const { spans } = recordSpans();

class OrderController extends Controller {
  place = route.post(
    '/',
    { body: z.strictObject({ total: z.number() }), permission: allowAny, response: z.strictObject({ id: z.string() }) },
    ({ db, body }) => db.transaction(async (tx) => ({ id: (await publish(tx, 'order.placed', body, { owner: 'ada' })).id })),
  );
}

const app = createApp({
  database,
  modules: [tracing(), webhooks({ urlPolicy: LOOPBACK })],
  mount: { '/v1': { '/orders': OrderController } },
  log: { level: 'silent' },
});
await app.openDatabases();
await migrateApp(app);
await app.listen({ port: 0 });
await app.db.transaction((tx) => createEndpoint(tx, { owner: 'ada', url: receiver, events: ['*'] }));
reportSpans(spans, { port: (app.fastify.server.address() as AddressInfo).port });
