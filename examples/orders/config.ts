import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AppOptions, Module } from 'kit';
import type { JobsOptions } from 'kit/contrib/jobs';
import { metrics } from 'kit/contrib/metrics';
import { folderMail, type AccountsOptions } from 'kit/contrib/accounts';
import { diskStore, type UploadOptions } from 'kit/contrib/uploads';
import { sqlStorage } from 'kit/throttle';
import { URLPolicy, type WebhookOptions } from 'kit/contrib/webhooks';
import { orderEventTypes } from './orders/event-types.ts';

/** Everything the example writes: databases, logs, the files of the demo's configuration server. DATA_FOLDER puts it elsewhere. */
export const dataFolder = process.env['DATA_FOLDER'] ?? join(import.meta.dirname, '.data');

/** SQLite unless DATABASE_URL, or the file DATABASE_URL_FILE names, holds another address: the toolkit reads those itself. */
export function database(): Pick<AppOptions, 'database'> {
  if (process.env['DATABASE_URL'] || process.env['DATABASE_URL_FILE']) return {};
  mkdirSync(dataFolder, { recursive: true });
  return { database: `sqlite:${join(dataFolder, 'orders.db')}` };
}

/** Budgets of throttles are in the database that all processes share; one process on SQLite counts in memory. */
export function throttling(): Pick<AppOptions, 'throttleStorage'> {
  return process.env['DATABASE_URL'] || process.env['DATABASE_URL_FILE'] ? { throttleStorage: sqlStorage() } : {};
}

export interface ConfigSection {
  readonly url: string;
  readonly token: string;
  readonly profile: string;
}

/** Where the settings come from; without an address the defaults in settings.ts hold. */
export function configSection(): ConfigSection | undefined {
  const { CONFIG_URL: url, CONFIG_TOKEN: given, CONFIG_TOKEN_FILE: file, CONFIG_PROFILE: profile = 'development' } = process.env;
  const token = given ?? (file === undefined ? undefined : readFileSync(file, 'utf8').trimEnd());
  return url === undefined || token === undefined ? undefined : { url, token, profile };
}

/** JSON lines on standard output; in the file LOG_FILE names, if it is set: the demo keeps its panel readable that way. */
export function log(): NonNullable<AppOptions['log']> {
  const file = process.env['LOG_FILE'];
  return file === undefined ? {} : { transport: { target: 'pino/file', options: { destination: file } } };
}

/** Metrics for Prometheus on METRICS_PORT, if it is set: every process of a machine needs its own. Loopback unless METRICS_HOST says otherwise. */
export function monitoring(): Module[] {
  const { METRICS_PORT: port, METRICS_HOST: host = '127.0.0.1' } = process.env;
  return port === undefined || port === '' ? [] : [metrics({ port: Number(port), host })];
}

/** Invoices lie beside the database; the addresses they are sent to are signed with UPLOAD_URL_KEYS, or with a secret of the installation. */
export function uploadOptions(): UploadOptions {
  return { store: diskStore({ folder: join(dataFolder, 'uploads') }) };
}

/** In development mails are files in a folder, which the admin site shows; links in them lead to PUBLIC_URL. Elsewhere `kit user invite --print` hands links over. */
export function accountOptions(): AccountsOptions {
  const { NODE_ENV: mode, PUBLIC_URL: url = 'http://127.0.0.1:3000' } = process.env;
  if (mode !== 'development') return {};
  return { signUp: 'invitation', mail: { ...folderMail({ folder: join(dataFolder, 'mails') }), linkUrl: `${url}/admin/` } };
}

/** In development webhooks may go to this machine, and the API sends them itself; elsewhere `kit webhooks deliver --loop` does. */
export function webhookOptions(): WebhookOptions {
  const eventTypes = orderEventTypes;
  if (process.env['NODE_ENV'] !== 'development') return { eventTypes };
  return { eventTypes, worker: true, urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) };
}

/** In development the API runs its jobs itself; elsewhere `kit jobs work` does. */
export function jobOptions(): Pick<JobsOptions, 'worker'> {
  return { worker: process.env['NODE_ENV'] === 'development' };
}
