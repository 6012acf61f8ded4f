import { context, SpanKind, type Tracer } from '@opentelemetry/api';
import type { Dialect } from '../../db/dialect.ts';
import type { DatabaseObserver } from '../../db/engine/database-observer.ts';
import type { QueryEvent } from '../../db/engine/query-observer.ts';
import { isRecordingNow, markFailed } from './otel-tracing.ts';

const SYSTEMS: Readonly<Record<Dialect, string>> = { postgres: 'postgresql', sqlite: 'sqlite' };
const TEXT_MAX = 2000;

/** A span for each statement inside a recorded trace. It is made when the statement is over: the database layer measures it anyway. */
export function statementSpans(tracer: Tracer): DatabaseObserver {
  const onQuery = (query: QueryEvent): void => {
    if (!isRecordingNow()) return;
    const endTime = Date.now();
    const { name, attributes } = describe(query.sql);
    const span = tracer.startSpan(
      name,
      { kind: SpanKind.CLIENT, startTime: endTime - query.durationMs, attributes: { ...attributes, ...attributesOf(query) } },
      context.active(),
    );
    if (query.errorType !== undefined) markFailed(span, query.errorType);
    span.end(endTime);
  };
  return { onQuery, wantsQuery: isRecordingNow };
}

function attributesOf(query: QueryEvent): Readonly<Record<string, string | number>> {
  return {
    'db.system.name': SYSTEMS[query.dialect],
    'db.namespace': query.using,
    'db.response.returned_rows': query.rowCount,
  };
}

interface StatementDescription {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
}

function describe(sql: string): StatementDescription {
  const { operation, table } = summaryOf(sql);
  return {
    name: table === undefined ? operation : `${operation} ${table}`,
    attributes: {
      'db.operation.name': operation,
      'db.query.text': withoutValues(sql).slice(0, TEXT_MAX),
      ...(table === undefined ? {} : { 'db.collection.name': table }),
    },
  };
}

function summaryOf(sql: string): { readonly operation: string; readonly table: string | undefined } {
  const operation = /^[\s(]*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'STATEMENT';
  return { operation, table: /\b(?:from|into|update)\s+(?:only\s+)?(?:"?\w+"?\.)?"?([a-z_]\w*)"?/i.exec(sql)?.[1] };
}

/** Parameters are not part of the text; what was written into it as a literal may still be personal data. */
export function withoutValues(sql: string): string {
  return sql
    .replaceAll(/\$(\w*)\$[^]*?\$\1\$/g, '?')
    .replaceAll(/\b[ebx]?'(?:[^'\\]|''|\\[^])*'/gi, '?')
    .replaceAll(/'(?:[^']|'')*'/g, '?')
    .replaceAll(/(?<![\w$.?])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b/gi, '?');
}
