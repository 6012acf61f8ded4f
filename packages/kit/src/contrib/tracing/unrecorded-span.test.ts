import { createContextKey, ROOT_CONTEXT, trace, TraceFlags } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { UnrecordedContext } from './unrecorded-span.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const KEY = createContextKey('a key of the application');

describe('the context of a request that is not recorded', () => {
  test('has one span, which is not sampled and goes on with the trace of the caller', () => {
    const around = new UnrecordedContext(TRACE);
    const span = trace.getSpan(around);
    expect(span?.isRecording()).toBe(false);
    expect(trace.getSpanContext(around)).toEqual({
      traceId: TRACE,
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      traceFlags: TraceFlags.NONE,
    });
    expect(trace.getSpan(around)).toBe(span);
    expect(trace.getSpanContext(new UnrecordedContext(undefined))?.traceId).toMatch(/^[0-9a-f]{32}$/);
  });

  test('takes values of the application like any context, keeping its span', () => {
    const around = new UnrecordedContext(TRACE);
    expect(around.getValue(KEY)).toBeUndefined();
    const more = around.setValue(KEY, 'value');
    expect(more.getValue(KEY)).toBe('value');
    expect(around.getValue(KEY)).toBeUndefined();
    expect(trace.getSpan(more)).toBe(trace.getSpan(around));
    expect(trace.getSpan(more.deleteValue(KEY))).toBe(trace.getSpan(around));
    expect(trace.getSpan(trace.deleteSpan(around))).toBeUndefined();
    expect(trace.getSpan(ROOT_CONTEXT)).toBeUndefined();
  });
});
