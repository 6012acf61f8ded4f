import { trace } from '@opentelemetry/api';
import type { Module } from '../../app/declare/module.ts';
import { installTracing } from '../../observe/tracing.ts';
import { readOptions, type OptionRules } from '../../options/read-options.ts';
import { flag, rule } from '../../options/value-rule.ts';
import { OtelTracing } from './otel-tracing.ts';
import { requestSpans } from './request-spans.ts';
import { statementSpans } from './statement-spans.ts';

export interface TracingOptions {
  /** A span for every statement on a database; on unless false. */
  readonly statements?: boolean;
  /**
   * The share of requests to record, from 0 to 1, decided here before the SDK is asked: the cheapest way to record few. Default: 1, which
   * leaves the decision to the SDK's sampler. Requests from trusted proxies are recorded as their `traceparent` says.
   */
  readonly sampleRatio?: number;
}

const ratio = rule('a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1);
const rules: OptionRules<TracingOptions> = { statements: flag, sampleRatio: ratio };

/**
 * Traces through OpenTelemetry: requests, permissions, handlers, statements, and the webhooks a request causes. Spans go to the SDK that the
 * process registers; without one nothing is recorded. Needs the package `@opentelemetry/api`, and the SDK's async context.
 *
 * @example
 * ```ts
 * createApp({ modules: [tracing({ sampleRatio: 0.1 })], mount });
 * ```
 */
export function tracing(options: TracingOptions = {}): Module {
  const { statements = true, sampleRatio = 1 } = readOptions('tracing()', options, rules);
  const tracer = trace.getTracer('kit');
  let stops: (() => void)[] = [];
  return {
    name: 'tracing',
    middleware: [requestSpans(tracer, sampleRatio)],
    setup({ databases }) {
      stops.push(installTracing(new OtelTracing(tracer)));
      if (!statements) return;
      for (const database of Object.values(databases)) stops.push(database.observe(statementSpans(tracer)));
    },
    stop() {
      for (const stop of stops) stop();
      stops = [];
    },
  };
}
