// A worker that delivers, without the application: node worker-process.ts <database url>
import { tracing } from '../../src/contrib/tracing/index.ts';
import { webhooks } from '../../src/contrib/webhooks/index.ts';
import { createApp } from '../../src/index.ts';
import { LOOPBACK } from '../webhooks/loopback.ts';
import { recordSpans, reportSpans } from './spans.ts';

const [database = ''] = process.argv.slice(2);
const { spans } = recordSpans();
const app = createApp({
  database,
  modules: [tracing(), webhooks({ urlPolicy: LOOPBACK, worker: true, pollIntervalMs: 50, sendTraceparent: true, schedule: [0.05, 0.05] })],
  mount: {},
  log: { level: 'silent' },
});
await app.start();
reportSpans(spans, {});
