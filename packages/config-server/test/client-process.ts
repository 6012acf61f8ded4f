// A service that lives on remote configuration, for tests that kill the server under it. Prints one JSON line per state it is in:
// what it would serve a caller of its own right now.
import { followGenerations, RemoteSource } from '../src/client/index.ts';

const [url = '', token = '', cacheFile = ''] = process.argv.slice(2);
const section = { url, application: 'billing', profile: 'production', token };
const source = new RemoteSource({ ...section, cacheFile, timeout: 1_000 });

const report = (error: string | null): void => {
  const { origin = null, generation = null } = source;
  process.stdout.write(
    `${JSON.stringify({ value: source.current === undefined ? null : source.get('value'), origin, generation, error })}\n`,
  );
};

const first = await source.refresh();
report(first.error?.kind ?? null);
setInterval(() => report(null), 20);
for await (const _ of followGenerations({ ...section, retryMaxMs: 200, onRetry: (error) => report(error.kind) })) {
  const { error } = await source.refresh();
  report(error?.kind ?? null);
}
