// Run in a project with the packed kit and one version of @opentelemetry/api: a request becomes a span with the name of its route.
import assert from 'node:assert/strict';
import { trace } from '@opentelemetry/api';
import { allowAny, Controller, createApp, route } from 'kit';
import { tracing } from 'kit/contrib/tracing';

const spans = [];
const context = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 };
const startSpan = (name) => {
  const span = new Proxy({ name }, { get: (target, key) => target[key] ?? (key === 'spanContext' ? () => context : () => span) });
  span.updateName = (newName) => ((spans[spans.indexOf(span)] = { ...span, name: newName }), span);
  spans.push(span);
  return span;
};
trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan: (name, ...rest) => rest.at(-1)(startSpan(name)) }) });

class Things extends Controller {
  list = route.get('/', { permission: allowAny }, () => undefined);
}
const app = createApp({
  database: 'sqlite::memory:',
  log: { level: 'silent' },
  modules: [tracing()],
  mount: { '/v1': { '/things': Things } },
});
await app.ready();
assert.equal((await app.inject({ url: '/v1/things' })).statusCode, 204);
assert.ok(
  spans.some(({ name }) => name.includes('/things')),
  `spans: ${spans.map(({ name }) => name).join(', ')}`,
);
await app.close();
