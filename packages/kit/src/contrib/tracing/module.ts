import { trace } from '@opentelemetry/api';
import type { Module } from '../../app/module.ts';
import { installTracing } from '../../observe/tracing.ts';
import { readOptions, type OptionRules } from '../../options/read-options.ts';
import { flag } from '../../options/value-rule.ts';
import { OtelTracing } from './otel-tracing.ts';
import { requestSpans } from './request-spans.ts';
import { statementSpans } from './statement-spans.ts';

export interface TracingOptions {
  /** A span for every statement on a database; on unless false. */
  readonly statements?: boolean;
}

const rules: OptionRules<TracingOptions> = { statements: flag };

/**
 * Traces through OpenTelemetry: requests, permissions, handlers, statements, and the webhooks a request causes. Spans go to the SDK that the
 * process registers; without one nothing is recorded. Needs the package `@opentelemetry/api`, and the SDK's async context.
 */
export function tracing(options: TracingOptions = {}): Module {
  const { statements = true } = readOptions('tracing()', options, rules);
  const tracer = trace.getTracer('kit');
  let stops: (() => void)[] = [];
  return {
    name: 'tracing',
    middleware: [requestSpans(tracer)],
    setup({ databases }) {
      stops.push(installTracing(new OtelTracing(tracer)));
      if (!statements) return;
      for (const database of Object.values(databases)) stops.push(database.observe({ onQuery: statementSpans(tracer) }));
    },
    stop() {
      for (const stop of stops) stop();
      stops = [];
    },
  };
}
