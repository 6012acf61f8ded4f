// The orders twice in one process, plain and watched, in turns: node http-kit-observed.ts <what watches them, see observers.ts>
import type { Server } from 'node:http';
import type { Module } from 'kit';
import { servingInTurns } from '../harness/alternating.ts';
import { ordersApp } from './kit-orders.ts';
import { observersOf } from './observers.ts';

const [mode = ''] = process.argv.slice(2);

async function listen(modules: readonly Module[]): Promise<Server> {
  const app = ordersApp(modules);
  await app.listen({ port: 0 });
  return app.fastify.server;
}

await servingInTurns(await listen([]), await listen(observersOf(mode)));
