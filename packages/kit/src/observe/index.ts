export type {
  Counter,
  GaugeOptions,
  GaugeReading,
  Histogram,
  HistogramOptions,
  Labels,
  LabelValues,
  MetricOptions,
  MetricRegistry,
} from './metric-registry.ts';
export { formatTraceParent, parseTraceParent, type TraceParent } from './traceparent.ts';
export { activeTracing, inSpan, installTracing, type Span, type SpanAttributes, type SpanOptions, type Tracing } from './tracing.ts';
