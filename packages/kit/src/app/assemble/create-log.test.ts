import { pino, stdSerializers } from 'pino';
import { expect, test } from 'vitest';
import { installTracing } from '../../observe/tracing.ts';
import { createLog, isPretty } from './create-log.ts';

const settings = { logLevel: 'info', logDestination: 'stdout', logFormat: 'json' };
const quoting = () => Object.assign(new Error('duplicate key'), { code: '23505', detail: 'Key (email)=(ada@example.com) already exists.' });

function lines() {
  const written: string[] = [];
  return { written, stream: { write: (line: string) => void written.push(line) } };
}

test('a logger of the application’s own does not write down the row that a database quotes in its error', () => {
  const { written, stream } = lines();
  const log = createLog(pino({ base: { app: 'shop' } }, stream), settings);
  log.error({ err: quoting() }, 'failed');
  log.child({ request_id: '1' }).error({ err: quoting() }, 'failed');
  expect(written).toHaveLength(2);
  for (const line of written) {
    expect(line).not.toContain('ada@example.com');
    expect(JSON.parse(line)).toMatchObject({ app: 'shop', err: { code: '23505', message: 'duplicate key' } });
  }
});

test('it stays its owner’s: the level follows, and a way with errors the owner chose is kept', () => {
  const { written, stream } = lines();
  const own = pino({ level: 'error' }, stream);
  const log = createLog(own, settings);
  log.info('unheard');
  own.level = 'info';
  log.info('heard');
  log.child({}).info('heard too');
  expect(written.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['heard', 'heard too']);
  const chosen = pino({ serializers: { err: (error: Error) => ({ only: stdSerializers.err(error).message }) } }, stream);
  createLog(chosen, settings).error({ err: quoting() }, 'failed');
  expect(JSON.parse(written.at(-1) as string)).toMatchObject({ err: { only: 'duplicate key' } });
});

test('every record inside a trace has its ids, with the app’s own logger too, and no record outside', () => {
  const { written, stream } = lines();
  let ids: { trace_id: string; span_id: string } | undefined = { trace_id: 't1', span_id: 's1' };
  const remove = installTracing({
    isRecording: () => false,
    span: (_name, _options, work) => work(undefined),
    traceparent: () => undefined,
    ids: () => ids,
  });
  const log = createLog(pino({ base: null, mixin: () => ({ region: 'eu' }) }, stream), settings);
  log.child({ request_id: '1' }).info('inside');
  ids = undefined;
  log.info('outside');
  remove();
  expect(written.map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({ trace_id: 't1', span_id: 's1', region: 'eu', request_id: '1' }),
    expect.not.objectContaining({ trace_id: expect.anything() as unknown }),
  ]);
});

test.each([
  ['auto', true, true],
  ['auto', undefined, false],
  ['pretty', undefined, true],
  ['json', true, false],
])('LOG_FORMAT=%s with a terminal: %s is pretty: %s', (format, isTTY, expected) => {
  expect(isPretty(format, isTTY === undefined ? {} : { isTTY })).toBe(expected);
});
