import { expect, test } from 'vitest';
import { ApiFault } from '../api/fault.ts';
import type { AdminSiteState } from '../api/shapes.ts';
import { troubleOf, type SiteFacts } from './site-trouble.ts';

const state: AdminSiteState = {
  at: '2026-03-01T12:05:00.000Z',
  process: { started_at: '2026-03-01T08:00:00.000Z', version: '2.4.0' },
  parts: [{ name: 'Database', tone: 'good', text: 'Works.' }],
};
const well: SiteFacts = {
  connection: { state: 'answering' },
  silentMs: 0,
  state,
  error: null,
  isOverdue: false,
  since: '2026-03-01T12:00:00.000Z',
  version: '2.4.0',
};

test('a site that works has no banner', () => {
  expect(troubleOf(well)).toBeNull();
  expect(troubleOf({ ...well, state: undefined, since: null })).toBeNull();
});

test.each([
  ['offline', 0, 'warning', 'You are offline: this device has no network.'],
  ['unreachable', 5_000, 'warning', 'The server cannot be reached.'],
  ['silent', 12_400, 'warning', 'The server has not answered for 12 s.'],
  ['offline', 40_000, 'bad', 'You are offline: this device has no network.'],
] as const)('%s for %i ms is %s', (kind, silentMs, tone, sentence) => {
  const trouble = troubleOf({ ...well, connection: { state: kind, since: 0 }, silentMs });
  expect(trouble).toMatchObject({ tone, sentences: [sentence, expect.any(String)] });
});

test('an ended session is told whatever else is known', () => {
  const error = new ApiFault({ status: 401, code: 'authentication_required', detail: 'Log in.' });
  expect(troubleOf({ ...well, error })).toMatchObject({ tone: 'bad', sentences: [expect.stringContaining('session has ended')] });
});

test('a slow server is a warning', () => {
  const parts = [{ name: 'Slow', tone: 'warning', text: 'in the last minute, 5 of 100 requests took 2 s or longer.' }] as const;
  expect(troubleOf({ ...well, state: { ...state, parts } })).toEqual({
    tone: 'warning',
    sentences: ['Slow: in the last minute, 5 of 100 requests took 2 s or longer.'],
  });
});

test('a restart is told for two minutes, one before the page was opened is not, and a newer version asks for a new page', () => {
  const started = (started_at: string, version = '2.4.0') => ({ ...well, state: { ...state, process: { started_at, version } } });
  expect(troubleOf(started('2026-03-01T12:04:40.000Z'))).toEqual({ tone: 'info', sentences: ['The server was restarted 20 s ago.'] });
  expect(troubleOf(started('2026-03-01T11:59:59.000Z'))).toBeNull();
  expect(troubleOf(started('2026-03-01T12:02:00.000Z'))).toBeNull();
  expect(troubleOf(started('2026-03-01T12:02:00.000Z', '2.5.0'))).toEqual({
    tone: 'info',
    sentences: ['Version 2.5.0 is running; this page is of version 2.4.0. Load the page again.'],
    remedy: 'reload',
  });
});
