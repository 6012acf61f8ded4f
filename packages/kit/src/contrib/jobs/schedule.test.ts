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
    expect(declare).toThrow(/not a name.*timeoutMs.*retry\.attempts.*schedule\.timeZone/s);
  });

  test('a cron expression that cannot be read is refused', () => {
    expect(() => job('a', { input, run, schedule: { cron: '99 * * * *', input: {} } })).toThrow('schedule.cron');
  });
});
