import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { readSettings } from './config.ts';
import { cursorsOf } from '../data/cursors.ts';
import type { App } from './module.ts';

test('an empty environment gives the documented defaults', () => {
  const { settings, faults } = readSettings({}, {});
  expect(faults).toEqual([]);
  expect(settings.databaseUrl).toBeUndefined();
  expect({ ...settings }).toMatchObject({
    errorFormat: 'problem+json',
    throttleRates: {},
    warnBlockingMs: 100,
    logLevel: 'info',
    shutdownDelayMs: 0,
    shutdownIdleMs: 1000,
    shutdownTimeoutMs: 10_000,
  });
  expect(readSettings({}, { NODE_ENV: 'development' }).settings.shutdownIdleMs).toBe(0);
  expect(Object.isFrozen(settings)).toBe(true);
});

test('the environment is read, options win over it', () => {
  const environment = {
    ERROR_FORMAT: 'detail',
    LOG_LEVEL: 'debug',
    WARN_BLOCKING_MS: '0',
    DATABASE_URL: 'sqlite:./a.db',
    SHUTDOWN_TIMEOUT_MS: '5',
  };
  expect(readSettings({}, environment).settings).toMatchObject({
    errorFormat: 'detail',
    logLevel: 'debug',
    warnBlockingMs: 0,
    databaseUrl: 'sqlite:./a.db',
    shutdownTimeoutMs: 5,
  });
  expect(readSettings({ logLevel: 'warn', warnBlockingMs: 7 }, environment).settings).toMatchObject({
    logLevel: 'warn',
    warnBlockingMs: 7,
  });
});

test('THROTTLE_RATES is a list of pairs or a JSON object', () => {
  const rates = { login: { count: 5, periodMs: 60_000 }, search: { count: 20, periodMs: 300_000 } };
  expect(readSettings({}, { THROTTLE_RATES: 'login=5/min, search=20/5min' }).settings.throttleRates).toEqual(rates);
  expect(readSettings({}, { THROTTLE_RATES: '{"login":"5/min","search":"20/5min"}' }).settings.throttleRates).toEqual(rates);
});

test('every fault is reported at once', () => {
  const environment = { ERROR_FORMAT: 'problem-json', LOG_LEVEL: 'loud', WARN_BLOCKING_MS: 'soon', THROTTLE_RATES: 'login,search=often' };
  const { faults } = readSettings({ logLevels: 'x' } as object, environment);
  expect(faults).toHaveLength(6);
  expect(faults.join('\n')).toContain('settings.logLevels is not a setting. Did you mean "logLevel"?');
  expect(faults.join('\n')).toContain('ERROR_FORMAT is "problem-json"; use one of problem+json, detail. Did you mean "problem+json"?');
  expect(readSettings({}, { THROTTLE_RATES: '{"login":' }).faults).toEqual([
    'THROTTLE_RATES starts like a JSON object but is not valid JSON.',
  ]);
});

test('secrets are there and never printed', () => {
  const { settings } = readSettings(
    {},
    {
      API_KEY_PEPPER: 'hunter2',
      WEBHOOK_SECRET_KEYS: 'hunter3',
      DATABASE_URL: 'postgres://app:hunter4@db/app',
    },
  );
  expect([settings.apiKeyPepper, settings.webhookSecretKeys]).toEqual(['hunter2', 'hunter3']);
  expect(settings.databaseUrl).toContain('hunter4');
  expect(JSON.stringify(settings) + inspect(settings)).not.toMatch(/hunter/);
});

test('a secret may come from the file its _FILE variable names; a fault names the file and never its content', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-settings-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [url, empty, gone] = [join(folder, 'url'), join(folder, 'empty'), join(folder, 'gone')];
  writeFileSync(url, 'postgres://app:canary@db/app\n');
  writeFileSync(empty, '\n');
  const { settings, faults } = readSettings({}, { DATABASE_URL_FILE: url });
  expect([settings.databaseUrl, faults]).toEqual(['postgres://app:canary@db/app', []]);
  expect(inspect(settings)).not.toContain('canary');
  expect(
    readSettings({}, { DATABASE_URL: 'sqlite:x', DATABASE_URL_FILE: url, API_KEY_PEPPER_FILE: empty, WEBHOOK_SECRET_KEYS_FILE: gone })
      .faults,
  ).toEqual([
    'DATABASE_URL and DATABASE_URL_FILE are both set; remove one of them.',
    `API_KEY_PEPPER_FILE names ${empty}, which is empty.`,
    `WEBHOOK_SECRET_KEYS_FILE names ${gone}, which cannot be read (ENOENT).`,
  ]);
});

test('a time that a timer cannot wait is refused: it would be over at once', () => {
  const { faults } = readSettings({}, { SHUTDOWN_TIMEOUT_MS: '9999999999', WARN_BLOCKING_MS: '2147483647' });
  expect(faults).toEqual(['SHUTDOWN_TIMEOUT_MS is "9999999999"; use at most 2147483647 milliseconds (24 days).']);
});

test('blanks are no number: they would count as 0', () => {
  expect(readSettings({}, { SHUTDOWN_TIMEOUT_MS: ' ' }).faults).toEqual([
    'SHUTDOWN_TIMEOUT_MS is " "; use a number of milliseconds, 0 or more.',
  ]);
});

test('of CURSOR_KEYS the first writes cursors, and all read them', async () => {
  const [first, second] = ['A'.repeat(43), 'B'.repeat(43)];
  const cursors = (keys: string) =>
    cursorsOf({ settings: readSettings({}, { CURSOR_KEYS: keys }).settings, databases: {} } as unknown as App);
  const position = { position: ['a', 1], backwards: false, count: null };
  const written = (await cursors(first)).write(position, 'orders');
  const rotated = await cursors(`${second},${first}`);
  expect(rotated.read(written, 'orders')).toEqual(position);
  const next = rotated.write(position, 'orders');
  expect((await cursors(second)).read(next, 'orders')).toEqual(position);
  expect((await cursors(second)).read(written, 'orders')).toBeUndefined();
  expect((await cursors(first)).read(next, 'orders')).toBeUndefined();
});

test('TRUSTED_PROXIES is a list, `none` says that there is none, and nothing leaves it open', () => {
  const proxies = (value?: string) => readSettings({}, value === undefined ? {} : { TRUSTED_PROXIES: value }).settings.trustedProxies;
  expect([proxies(), proxies('none'), proxies('loopback, 10.0.0.0/8')]).toEqual([undefined, [], ['loopback', '10.0.0.0/8']]);
  expect(readSettings({}, { DATABASE_PREPARE: 'false' }).faults).toEqual(['DATABASE_PREPARE is "false"; use one of on, off.']);
  expect(readSettings({}, { DATABASE_PREPARE: 'off' }).settings.databasePrepare).toBe('off');
});

test('a setting of another type is a fault that says what to give, and never shows a secret', () => {
  const given = {
    trustedProxies: 'none',
    apiServers: 'https://api.example.org',
    throttleRates: 'login=5/min',
    warnBlockingMs: '100',
    logLevel: ['info'],
    cursorKeys: ['hunter2'],
    apiKeyPepper: Buffer.from('hunter2'),
  };
  const { faults, settings } = readSettings(given as never, {});
  expect(faults).toEqual([
    'createApp: settings.trustedProxies is "none"; use a list: [ … ].',
    'createApp: settings.apiServers is "https://api.example.org"; use a list: [ … ].',
    'createApp: settings.throttleRates is "login=5/min"; use an object: { name: … }.',
    'createApp: settings.warnBlockingMs is "100"; use a number.',
    'createApp: settings.logLevel is a list; use a string.',
    'createApp: settings.cursorKeys is not valid; use a string.',
    'createApp: settings.apiKeyPepper is not valid; use a string.',
  ]);
  expect([settings.trustedProxies, settings.apiServers, settings.logLevel]).toEqual([undefined, [], 'info']);
});
