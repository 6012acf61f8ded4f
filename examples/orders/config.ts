import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AppOptions } from 'kit';
import { URLPolicy, type WebhookOptions } from 'kit/contrib/webhooks';

/** Everything the example writes: databases, logs, the files of the demo's configuration server. */
export const dataFolder = join(import.meta.dirname, '.data');

/** SQLite unless DATABASE_URL names a PostgreSQL database: the only change between the two. */
export function databaseUrl(): string {
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '') return given;
  mkdirSync(dataFolder, { recursive: true });
  return `sqlite:${join(dataFolder, 'orders.db')}`;
}

export interface ConfigServerAddress {
  readonly url: string;
  readonly token: string;
}

/** Where the settings come from; without both variables the defaults in settings.ts hold. */
export function configServer(): ConfigServerAddress | undefined {
  const [url, token] = [process.env['CONFIG_URL'], process.env['CONFIG_TOKEN']];
  return url === undefined || token === undefined ? undefined : { url, token };
}

/** JSON lines on standard output; in the file LOG_FILE names, if it is set: the demo keeps its panel readable that way. */
export function log(): NonNullable<AppOptions['log']> {
  const file = process.env['LOG_FILE'];
  return file === undefined ? {} : { transport: { target: 'pino/file', options: { destination: file } } };
}

/** In development webhooks may go to this machine, and the API sends them itself; elsewhere `kit webhooks deliver --loop` does. */
export function webhookOptions(): WebhookOptions {
  if (process.env['NODE_ENV'] !== 'development') return {};
  return { worker: true, urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) };
}
