import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { job } from './job.ts';
import { decideTick, parseSchedule } from './schedule.ts';

const at = (text: string): Date => new Date(text);
const nightly = (missed: 'skip' | 'once' = 'skip') => parseSchedule({ cron: '0 3 * * *', timeZone: 'Europe/Berlin', missed, input: {} });

describe('a schedule', () => {
  test('follows the clocks of its time zone through the change to and from summer time', () => {
    const schedule = nightly();
    expect(schedule.nextTick(at('2026-03-27T12:00:00Z'))).toEqual(at('2026-03-28T02:00:00Z'));
    expect(schedule.nextTick(at('2026-03-28T12:00:00Z'))).toEqual(at('2026-03-29T01:00:00Z'));
    expect(schedule.nextTick(at('2026-10-24T12:00:00Z'))).toEqual(at('2026-10-25T02:00:00Z'));
  });

  test('an hour that does not exist still has its tick once, an hour that comes twice has it once', () => {
    const skipped = parseSchedule({ cron: '30 2 * * *', timeZone: 'Europe/Berlin', input: {} });
    const ticks = (from: string, until: string): Date[] => {
      const found: Date[] = [];
      for (let tick = skipped.nextTick(at(from)); tick !== null && tick < at(until); tick = skipped.nextTick(tick)) found.push(tick);
      return found;
    };
    expect(ticks('2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z')).toHaveLength(1);
    expect(ticks('2026-10-24T12:00:00Z', '2026-10-25T12:00:00Z')).toHaveLength(1);
  });

  test('nothing is due before the next tick', () => {
    expect(decideTick(nightly(), at('2026-03-01T02:00:00Z'), at('2026-03-02T01:59:59Z'))).toBeNull();
  });

  test('a tick on time is started, a missed one is passed over or started once', () => {
    const last = at('2026-03-01T02:00:00Z');
    expect(decideTick(nightly(), last, at('2026-03-02T02:00:01Z'))).toEqual({ tick: at('2026-03-02T02:00:00Z'), starts: true });
    expect(decideTick(nightly(), last, at('2026-03-05T09:00:00Z'))).toEqual({ tick: at('2026-03-05T02:00:00Z'), starts: false });
    expect(decideTick(nightly('once'), last, at('2026-03-05T09:00:00Z'))).toEqual({ tick: at('2026-03-05T02:00:00Z'), starts: true });
  });

  test.each([
    ['* 9-16 * * *', '2026-03-11T20:00:00Z', '2026-03-11T16:59:00Z'],
    ['* 9-16 * * *', '2026-03-11T08:59:59.999Z', '2026-03-10T16:59:00Z'],
    ['*/2 * * * * *', '2026-09-01T00:00:01.500Z', '2026-09-01T00:00:00Z'],
    ['0 0 29 2 *', '2036-01-01T00:00:00Z', '2032-02-29T00:00:00Z'],
    ['* * * 1 *', '2026-12-31T00:00:00Z', '2026-01-31T23:59:00Z'],
  ])('missed: once starts exactly one job for %s until %s, whatever the gap', (cron, until, expected) => {
    const schedule = parseSchedule({ cron, missed: 'once', input: {} });
    const now = at(until);
    const from = cron === '0 0 29 2 *' ? at('2020-01-01T00:00:00Z') : at('2026-01-01T00:00:00Z');
    const first = decideTick(schedule, from, now);
    expect(first).toEqual({ tick: at(expected), starts: true });
    expect(decideTick(schedule, first?.tick as Date, now)).toBeNull();
  });

  test('the last tick is found through the hours that summer time skips and repeats', () => {
    for (const cron of ['30 2 * * *', '*/7 1-3 * * *', '0 * * * *']) {
      const schedule = parseSchedule({ cron, timeZone: 'Europe/Berlin', missed: 'once', input: {} });
      for (let hour = 0; hour < 48; hour++) {
        const now = new Date(at('2026-10-24T00:10:00Z').getTime() + hour * 3_600_000);
        const last = decideTick(schedule, at('2026-10-01T00:00:00Z'), now)?.tick as Date;
        expect(decideTick(schedule, last, now)).toBeNull();
      }
    }
  });

  test('months without a worker are passed over quickly', () => {
    const often = parseSchedule({ cron: '* * * * * *', missed: 'once', input: {} });
    expect(decideTick(often, at('2026-01-01T00:00:00Z'), at('2026-06-01T00:00:00.500Z'))).toEqual({
      tick: at('2026-06-01T00:00:00Z'),
      starts: true,
    });
  });
});

describe('a declaration', () => {
  const input = z.object({});
  const run = (): undefined => undefined;

  test('reports every fault at once, with what was meant', () => {
    const declare = (): unknown =>
      job('no name', {
        input,
        run,
        timeOutMs: 5,
        retry: { attempts: 0 },
        schedule: { cron: 'daily', timeZone: 'Mars/Base', input: {} },
      } as never);
    expect(declare).toThrow(/name is "no name".*timeoutMs.*retry\.attempts.*schedule\.timeZone/s);
  });

  test('a cron expression that cannot be read is refused', () => {
    expect(() => job('a', { input, run, schedule: { cron: '99 * * * *', input: {} } })).toThrow('schedule.cron');
  });
});
