import type * as OpenTelemetry from '@opentelemetry/api';
import type { ServerConfig } from '../config/config.ts';
import type { Problem } from '../config/problem.ts';
import { packageVersion } from '../package-version.ts';
import type { RecordSpan } from './record-span.ts';
import { requestSpans } from './request-spans.ts';

export type TracingResult = { readonly recordSpan: RecordSpan | undefined } | { readonly problem: Problem };

const loadOpenTelemetry = (): Promise<typeof OpenTelemetry> => import('@opentelemetry/api');

/** Loads OpenTelemetry when `server.tracing` asks for it, and nothing otherwise. */
export async function openTracing({ tracing }: ServerConfig, load = loadOpenTelemetry): Promise<TracingResult> {
  if (!tracing) return { recordSpan: undefined };
  try {
    return { recordSpan: requestSpans(await load(), packageVersion()) };
  } catch {
    const message = 'needs the package @opentelemetry/api, which cannot be loaded; install it beside this one, or set tracing = false';
    return { problem: { key: 'server.tracing', message } };
  }
}
