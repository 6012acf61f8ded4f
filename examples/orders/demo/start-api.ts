import { migrateApp } from 'kit';
import app from '../kit.config.ts';
import { freePort } from './free-port.ts';
import { seed, type DemoAccess } from './seed.ts';
import type { DemoReceiver } from './start-receiver.ts';

export interface DemoApi extends DemoAccess {
  readonly url: string;
  readonly metricsUrl: string;
  stop(): Promise<void>;
}

export async function startApi(receiver: DemoReceiver): Promise<DemoApi> {
  await migrateApp(app);
  await app.ready();
  const access = await seed(app, receiver);
  const url = await app.listen({ host: '127.0.0.1', port: await freePort(3000) });
  return { ...access, url, metricsUrl: `http://127.0.0.1:${process.env['METRICS_PORT']}/metrics`, stop: () => app.close() };
}
