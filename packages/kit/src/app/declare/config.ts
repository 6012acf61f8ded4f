import { parseKeyList } from '../../db/sealing/key-list.ts';
import { readFileSync } from 'node:fs';
import type { ErrorFormat } from '../../errors/render.ts';
import { RESPONSE_CHECKS, type ResponseChecks } from '../../http/declare/response-checks.ts';
import { isDevelopment } from '../../middleware/config.ts';
import { parseRate, rateFault } from '../../throttle/rate.ts';
import type { ThrottleRates } from '../../throttle/throttle.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { type OptionRules, valueFaults } from '../../options/read-options.ts';
import { listOf, recordOf, rule, secret as hidden, text as aString, TIMER_MS_MAX } from '../../options/value-rule.ts';

/** All settings from the environment, read once and frozen. Options of `createApp` take precedence. */
export interface Settings {
  /** DATABASE_URL, or the file DATABASE_URL_FILE names. It may hold a password, so it is never printed: not enumerable. */
  readonly databaseUrl: string | undefined;
  /** ERROR_FORMAT: `problem+json` (default) or `detail`. */
  readonly errorFormat: ErrorFormat;
  /**
   * RESPONSE_CHECKS: what happens to a response that does not match its schema. `error`: a 500 that names the path (default where NODE_ENV is
   * `development` or `test`); `log`: it is logged and counted (default elsewhere); `off`.
   */
  readonly responseChecks: ResponseChecks;
  /** THROTTLE_RATES: `login=5/min,search=20/5min`, or the same as a JSON object. */
  readonly throttleRates: ThrottleRates;
  /** WARN_BLOCKING_MS: a handler that holds the event loop longer is named in the log. 0 turns the warning off. */
  readonly warnBlockingMs: number;
  /** LOG_LEVEL: a pino level. */
  readonly logLevel: string;
  /** LOG_DESTINATION: `stdout` (default) or `stderr`, which the commands of `kit` use to keep their output clean. */
  readonly logDestination: string;
  /** LOG_FORMAT: `json`, `pretty` (lines for people), or `auto` (default): pretty on a terminal, JSON elsewhere. */
  readonly logFormat: string;
  /**
   * TRUSTED_PROXIES: proxies whose X-Forwarded-For is believed, by comma: addresses, subnets, `loopback`. `none` says that there is no proxy.
   * Undefined where nothing is said.
   */
  readonly trustedProxies: readonly string[] | undefined;
  /** API_SERVERS: URLs where clients reach the API, by comma, for the OpenAPI document. Default: the server that the document comes from. */
  readonly apiServers: readonly string[];
  /** DATABASE_PREPARE: `off` for a pooler in front of PostgreSQL that cannot keep prepared statements; `on` (default) elsewhere. */
  readonly databasePrepare: 'on' | 'off';
  /** SHUTDOWN_DELAY_MS: how long the app goes on accepting requests after it has begun to close, so that a load balancer sees it is not ready. */
  readonly shutdownDelayMs: number;
  /**
   * SHUTDOWN_IDLE_MS: how long connections without a request stay open when the app closes, for a proxy that is about to use one. Default:
   * 1000, or 0 where NODE_ENV is `development` or `test`.
   */
  readonly shutdownIdleMs: number;
  /** SHUTDOWN_TIMEOUT_MS: how long open requests may take to finish when the app closes, after the delay. */
  readonly shutdownTimeoutMs: number;
  /** API_KEY_PEPPER, or the file API_KEY_PEPPER_FILE names. Never printed: not enumerable. */
  readonly apiKeyPepper: string | undefined;
  /**
   * API_KEY_PEPPER_PREVIOUS, or the file API_KEY_PEPPER_PREVIOUS_FILE names: the pepper before, while keys move to the new one. `none`: there
   * was no pepper. Never printed: not enumerable.
   */
  readonly apiKeyPepperPrevious: string | undefined;
  /** UPLOAD_URL_KEYS, as given, or the file UPLOAD_URL_KEYS_FILE names. Never printed: not enumerable. */
  readonly uploadUrlKeys: string | undefined;
  /** WEBHOOK_SECRET_KEYS, as given, or the file WEBHOOK_SECRET_KEYS_FILE names. Never printed: not enumerable. */
  readonly webhookSecretKeys: string | undefined;
  /** ACCOUNT_SECRET_KEYS, as given, or the file ACCOUNT_SECRET_KEYS_FILE names. Never printed: not enumerable. */
  readonly accountSecretKeys: string | undefined;
  /** DATA_KEYS, as given, or the file DATA_KEYS_FILE names: keys of encrypted columns, `id:key` by comma. Never printed: not enumerable. */
  readonly dataKeys: string | undefined;
  /** DATA_SEARCH_KEYS, as given, or the file DATA_SEARCH_KEYS_FILE names: keys of search values. Never printed: not enumerable. */
  readonly dataSearchKeys: string | undefined;
  /**
   * CURSOR_KEYS, or the file CURSOR_KEYS_FILE names: keys of 32 bytes in base64url, by comma. The first writes the cursors of lists, all
   * read them. Unset, each database makes a key for itself. Never printed: not enumerable.
   */
  readonly cursorKeys: string | undefined;
}

export type SettingsInput = { readonly [K in keyof Settings]?: K extends 'throttleRates' ? Readonly<Record<string, string>> : Settings[K] };

/** A proxy under load uses each of its connections within a second; the response then ends the connection. */
const SHUTDOWN_IDLE_MS = 1000;

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
const logDestinations = ['stdout', 'stderr'];
const logFormats = ['auto', 'json', 'pretty'];
const errorFormats = ['problem+json', 'detail'];
const secretNames: readonly (keyof Settings)[] = [
  'databaseUrl',
  'apiKeyPepper',
  'apiKeyPepperPrevious',
  'uploadUrlKeys',
  'webhookSecretKeys',
  'accountSecretKeys',
  'dataKeys',
  'dataSearchKeys',
  'cursorKeys',
];

export interface SettingsReading {
  readonly settings: Settings;
  /** Each a sentence that names the variable; values of secrets never appear. */
  readonly faults: readonly string[];
}

/** Reads the environment under the given overrides and reports every fault at once. */
export function readSettings(given: SettingsInput = {}, environment: NodeJS.ProcessEnv = process.env): SettingsReading {
  const faults: string[] = [];
  const overrides = usableSettings(given, faults);
  const text = (name: string) => (environment[name] === '' ? undefined : environment[name]);
  const secret = (name: string) => text(name) ?? secretFile(name, text(`${name}_FILE`), faults);
  for (const name of [
    'DATABASE_URL',
    'API_KEY_PEPPER',
    'API_KEY_PEPPER_PREVIOUS',
    'UPLOAD_URL_KEYS',
    'WEBHOOK_SECRET_KEYS',
    'ACCOUNT_SECRET_KEYS',
    'DATA_KEYS',
    'DATA_SEARCH_KEYS',
    'CURSOR_KEYS',
  ]) {
    if (text(name) !== undefined && text(`${name}_FILE`) !== undefined)
      faults.push(`${name} and ${name}_FILE are both set; remove one of them.`);
  }
  const oneOf = (source: string, value: string, allowed: readonly string[]) => {
    if (!allowed.includes(value))
      faults.push(`${source} is ${JSON.stringify(value)}; use one of ${allowed.join(', ')}.${didYouMean(value, allowed)}`);
    return value;
  };
  const milliseconds = (source: string, given: string | number | undefined, fallback: number) => {
    // Blanks would count as 0.
    const value = given === undefined ? fallback : String(given).trim() === '' ? Number.NaN : Number(given);
    if (!Number.isFinite(value) || value < 0)
      faults.push(`${source} is ${JSON.stringify(given)}; use a number of milliseconds, 0 or more.`);
    else if (value > TIMER_MS_MAX)
      faults.push(`${source} is ${JSON.stringify(given)}; use at most ${TIMER_MS_MAX} milliseconds (24 days).`);
    return value;
  };
  const settings: Record<keyof Settings, unknown> = {
    databaseUrl: overrides.databaseUrl ?? secret('DATABASE_URL'),
    errorFormat: oneOf('ERROR_FORMAT', overrides.errorFormat ?? text('ERROR_FORMAT') ?? 'problem+json', errorFormats),
    responseChecks: oneOf(
      'RESPONSE_CHECKS',
      overrides.responseChecks ?? text('RESPONSE_CHECKS') ?? (isDevelopment(environment) ? 'error' : 'log'),
      RESPONSE_CHECKS,
    ),
    throttleRates: readRates(overrides.throttleRates ?? text('THROTTLE_RATES'), faults),
    warnBlockingMs: milliseconds('WARN_BLOCKING_MS', overrides.warnBlockingMs ?? text('WARN_BLOCKING_MS'), 100),
    logLevel: oneOf('LOG_LEVEL', overrides.logLevel ?? text('LOG_LEVEL') ?? 'info', logLevels),
    logDestination: oneOf('LOG_DESTINATION', overrides.logDestination ?? text('LOG_DESTINATION') ?? 'stdout', logDestinations),
    logFormat: oneOf('LOG_FORMAT', overrides.logFormat ?? text('LOG_FORMAT') ?? 'auto', logFormats),
    trustedProxies: overrides.trustedProxies ?? listOfProxies(text('TRUSTED_PROXIES')),
    apiServers: serversOf(overrides.apiServers ?? text('API_SERVERS')?.split(',') ?? [], faults),
    databasePrepare: oneOf('DATABASE_PREPARE', overrides.databasePrepare ?? text('DATABASE_PREPARE') ?? 'on', ['on', 'off']),
    shutdownDelayMs: milliseconds('SHUTDOWN_DELAY_MS', overrides.shutdownDelayMs ?? text('SHUTDOWN_DELAY_MS'), 0),
    shutdownIdleMs: milliseconds(
      'SHUTDOWN_IDLE_MS',
      overrides.shutdownIdleMs ?? text('SHUTDOWN_IDLE_MS'),
      isDevelopment(environment) ? 0 : SHUTDOWN_IDLE_MS,
    ),
    shutdownTimeoutMs: milliseconds('SHUTDOWN_TIMEOUT_MS', overrides.shutdownTimeoutMs ?? text('SHUTDOWN_TIMEOUT_MS'), 10_000),
    apiKeyPepper: overrides.apiKeyPepper ?? secret('API_KEY_PEPPER'),
    apiKeyPepperPrevious: overrides.apiKeyPepperPrevious ?? secret('API_KEY_PEPPER_PREVIOUS'),
    uploadUrlKeys: overrides.uploadUrlKeys ?? secret('UPLOAD_URL_KEYS'),
    webhookSecretKeys: overrides.webhookSecretKeys ?? secret('WEBHOOK_SECRET_KEYS'),
    accountSecretKeys: overrides.accountSecretKeys ?? secret('ACCOUNT_SECRET_KEYS'),
    dataKeys: overrides.dataKeys ?? secret('DATA_KEYS'),
    dataSearchKeys: overrides.dataSearchKeys ?? secret('DATA_SEARCH_KEYS'),
    cursorKeys: overrides.cursorKeys ?? secret('CURSOR_KEYS'),
  };
  parseKeyList('DATA_KEYS', settings.dataKeys as string | undefined, faults);
  parseKeyList('DATA_SEARCH_KEYS', settings.dataSearchKeys as string | undefined, faults);
  if (settings.cursorKeys !== undefined && !/^[\w-]{43}(?:,[\w-]{43})*$/.test(settings.cursorKeys as string))
    faults.push('CURSOR_KEYS must be keys of 32 bytes in base64url (43 characters each), separated by commas.');
  for (const name of secretNames) Object.defineProperty(settings, name, { enumerable: false });
  return { settings: Object.freeze(settings) as unknown as Settings, faults };
}

const aNumber = rule('a number', (value) => typeof value === 'number');
const hiddenText = hidden('a string', (value) => typeof value === 'string');

/** What `createApp({ settings })` may be given: the values themselves are judged as those of the environment. */
const settingRules: OptionRules<SettingsInput> = {
  databaseUrl: hiddenText,
  errorFormat: aString,
  responseChecks: aString,
  throttleRates: recordOf(aString),
  warnBlockingMs: aNumber,
  logLevel: aString,
  logDestination: aString,
  logFormat: aString,
  trustedProxies: listOf(aString),
  apiServers: listOf(aString),
  databasePrepare: aString,
  shutdownDelayMs: aNumber,
  shutdownIdleMs: aNumber,
  shutdownTimeoutMs: aNumber,
  apiKeyPepper: hiddenText,
  apiKeyPepperPrevious: hiddenText,
  uploadUrlKeys: hiddenText,
  webhookSecretKeys: hiddenText,
  accountSecretKeys: hiddenText,
  dataKeys: hiddenText,
  dataSearchKeys: hiddenText,
  cursorKeys: hiddenText,
};

/** The settings of the right type; the others are faults. */
function usableSettings(given: SettingsInput, faults: string[]): SettingsInput {
  const names = Object.keys(settingRules);
  const usable = Object.entries(given).filter(([name, value]) => {
    const rules = names.includes(name) ? { [name]: settingRules[name as keyof SettingsInput] } : {};
    const wrong = valueFaults('createApp', { [name]: value }, rules, 'settings.').map(({ message }) => message);
    if (!names.includes(name)) wrong.push(`settings.${name} is not a setting.${didYouMean(name, names)}`);
    faults.push(...wrong);
    return wrong.length === 0;
  });
  return Object.fromEntries(usable);
}

function listOfProxies(given: string | undefined): readonly string[] | undefined {
  if (given === undefined || given.trim() === 'none') return given === undefined ? undefined : [];
  return given.split(',').map((each) => each.trim());
}

function serversOf(given: readonly string[], faults: string[]): readonly string[] {
  const servers = given.map((each) => each.trim());
  for (const server of servers)
    if (!/^(?:https?:\/\/[^/?#\s]+)?(?:\/[^?#\s]*)?$/.test(server) || server === '')
      faults.push(`API_SERVERS has ${JSON.stringify(server)}; use URLs such as "https://api.example.org" or paths such as "/api".`);
  return servers;
}

/** A mounted secret: the file's text without the line break an editor leaves at its end. */
function secretFile(name: string, path: string | undefined, faults: string[]): string | undefined {
  if (path === undefined) return undefined;
  try {
    const content = readFileSync(path, 'utf8').trimEnd();
    if (content === '') faults.push(`${name}_FILE names ${path}, which is empty.`);
    return content === '' ? undefined : content;
  } catch (error) {
    faults.push(`${name}_FILE names ${path}, which cannot be read (${(error as NodeJS.ErrnoException).code}).`);
    return undefined;
  }
}

function readRates(source: string | Readonly<Record<string, string>> | undefined, faults: string[]): ThrottleRates {
  const pairs = source === undefined ? [] : typeof source === 'string' ? splitRates(source, faults) : Object.entries(source);
  const rates: Record<string, ReturnType<typeof parseRate>> = {};
  for (const [name, rate] of pairs) {
    const fault = rateFault(rate);
    if (fault === null) rates[name] = parseRate(rate);
    else faults.push(`THROTTLE_RATES, "${name}": ${fault}`);
  }
  return Object.freeze(rates);
}

function splitRates(source: string, faults: string[]): [string, string][] {
  if (source.trimStart().startsWith('{')) {
    try {
      return Object.entries(JSON.parse(source) as Record<string, string>);
    } catch {
      faults.push('THROTTLE_RATES starts like a JSON object but is not valid JSON.');
      return [];
    }
  }
  const pairs: [string, string][] = [];
  for (const part of source.split(',')) {
    if (part.trim() === '') continue;
    const [name = '', rate] = part.split('=', 2).map((each) => each.trim());
    if (rate === undefined || name === '')
      faults.push(`THROTTLE_RATES has ${JSON.stringify(part.trim())}; write name=rate, as in login=5/min.`);
    else pairs.push([name, rate]);
  }
  return pairs;
}
