import { migrateApp } from 'kit';
import app from '../kit.config.ts';
import type { ChosenPort } from './free-port.ts';
import { seed, type DemoAccess } from './seed.ts';
import type { DemoReceiver } from './start-receiver.ts';

export interface DemoApi extends DemoAccess {
  readonly url: string;
  /** Why it listens on this port; empty for the default. */
  readonly portReason: string;
  readonly metricsUrl: string;
  stop(): Promise<void>;
}

export async function startApi(receiver: DemoReceiver, { port, reason }: ChosenPort): Promise<DemoApi> {
  await migrateApp(app);
  await app.ready();
  const access = await seed(app, receiver);
  const url = await app.listen({ host: '127.0.0.1', port });
  return {
    ...access,
    url,
    portReason: reason,
    metricsUrl: `http://127.0.0.1:${process.env['METRICS_PORT']}/metrics`,
    stop: () => app.close(),
  };
}
