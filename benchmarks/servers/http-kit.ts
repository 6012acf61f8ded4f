// The orders of kit-orders.ts, and nothing else.
import type { AddressInfo } from 'node:net';
import { serving } from '../harness/server-process.ts';
import { ordersApp } from './kit-orders.ts';

const app = ordersApp();
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
