// A receiver in a program of its own that continues the trace it is sent; the first request fails.
import type { AddressInfo } from 'node:net';
import * as z from 'zod';
import { tracing } from '../../src/contrib/tracing/index.ts';
import { allowAny, Controller, createApp, route } from '../../src/index.ts';
import { recordSpans, reportSpans } from './spans.ts';

const { spans } = recordSpans();
let requests = 0;

class ReceiverController extends Controller {
  receive = route.post('/', { body: z.looseObject({ type: z.string() }), permission: allowAny, status: 204 }, ({ reply }) => {
    requests += 1;
    if (requests === 1) reply.code(503);
  });
}

const app = createApp({
  database: 'sqlite::memory:',
  modules: [tracing()],
  mount: { '/hooks': { '/': ReceiverController } },
  trustedProxies: ['loopback'],
  log: { level: 'silent' },
});
await app.listen({ port: 0 });
reportSpans(spans, { port: (app.fastify.server.address() as AddressInfo).port });
