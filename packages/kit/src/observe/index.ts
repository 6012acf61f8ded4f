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
