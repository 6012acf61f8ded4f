import type * as Prometheus from 'prom-client';
import type {
  Counter,
  GaugeOptions,
  GaugeReading,
  Histogram,
  HistogramOptions,
  LabelValues,
  MetricOptions,
  MetricRegistry,
} from '../../observe/metric-registry.ts';
import { onDemand } from '../../options/on-demand.ts';
import { BoundedLabels } from './bounded-labels.ts';

/** With the first registry: apps import `metrics` that use it only where a port is set. */
export const prometheus = onDemand<typeof Prometheus>('prom-client');

/** From a cached lookup to a request whose client has given up. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Prometheus gives a scrape 10 s unless told: a database that hangs must not cost the other metrics. */
const READ_MS_MAX = 3000;
const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;

interface ReadGauge {
  readonly name: string;
  /** Reads the values first, then replaces the old ones; forgets them when reading fails. */
  refresh(): Promise<void>;
}

/** The metrics of one application, in the format of Prometheus. */
export class PrometheusRegistry implements MetricRegistry {
  readonly prometheus = new (prometheus().Registry)();
  readonly contentType: string = this.prometheus.contentType;
  readonly #gauges: ReadGauge[] = [];
  readonly #failures: Counter<'metric'>;
  readonly #onFailure: (metric: string, error: unknown) => void;
  #scrape: Promise<string> | undefined;

  constructor(onFailure: (metric: string, error: unknown) => void) {
    this.#onFailure = onFailure;
    this.#failures = this.counter({
      name: 'kit_metrics_read_failures_total',
      help: 'Gauges that could not be read for a scrape.',
      labels: { metric: { max: 200 } },
    });
  }

  counter<L extends string = never>(options: MetricOptions<L>): Counter<L> {
    if (!options.name.endsWith('_total')) throw new TypeError(`The counter "${options.name}" must end in "_total".`);
    const bounds = this.#declare(options);
    const counter = new (prometheus().Counter)({ ...this.#described(options), labelNames: bounds.names });
    return {
      add(labels, by = 1) {
        if (!(by >= 0 && by < Infinity)) throw new TypeError(`${options.name} cannot count ${by}: a counter only rises.`);
        counter.inc(bounds.bound(labels), by);
      },
    };
  }

  histogram<L extends string = never>(options: HistogramOptions<L>): Histogram<L> {
    const { name, buckets = SECONDS } = options;
    const bounds = this.#declare(options);
    const histogram = new (prometheus().Histogram)({ ...this.#described(options), labelNames: bounds.names, buckets: [...buckets] });
    return {
      observe(labels, value) {
        if (!Number.isFinite(value)) throw new TypeError(`${name} cannot observe ${value}: it is not a number.`);
        histogram.observe(bounds.bound(labels), value);
      },
    };
  }

  gauge<L extends string = never>(options: GaugeOptions<L>): void {
    const bounds = this.#declare(options);
    const gauge = new (prometheus().Gauge)({ ...this.#described(options), labelNames: bounds.names });
    this.#gauges.push({
      name: options.name,
      async refresh() {
        let reading: GaugeReading<L> = null;
        try {
          reading = await withDeadline(async () => options.read());
        } finally {
          gauge.reset();
          // What an open label says is counted for each reading: the values of the last one are gone.
          bounds.reset();
          // Without labels a reset leaves a zero behind, which would be a value.
          if (reading === null && bounds.names.length === 0) gauge.remove();
          if (typeof reading === 'number') gauge.set(reading);
          else for (const { labels, value } of reading ?? []) gauge.set(bounds.bound(labels), value);
        }
      },
    });
  }

  #described({ name, help }: { readonly name: string; readonly help: string }): {
    name: string;
    help: string;
    registers: Prometheus.Registry[];
  } {
    return { name, help, registers: [this.prometheus] };
  }

  #declare<L extends string>({ name, labels }: MetricOptions<L>): BoundedLabels<L> {
    if (!NAME.test(name)) throw new TypeError(`"${name}" is not the name of a metric; write it like kit_orders_placed_total.`);
    if (this.prometheus.getSingleMetric(name) !== undefined) throw new TypeError(`Two modules declare the metric "${name}".`);
    return new BoundedLabels(labels ?? ({} as Readonly<Record<L, LabelValues>>));
  }

  /** The whole exposition. Scrapes at the same time share one. */
  text(): Promise<string> {
    this.#scrape ??= this.#read().finally(() => (this.#scrape = undefined));
    return this.#scrape;
  }

  async #read(): Promise<string> {
    await Promise.all(
      this.#gauges.map(async (gauge) => {
        try {
          await gauge.refresh();
        } catch (error) {
          this.#failures.add({ metric: gauge.name });
          this.#onFailure(gauge.name, error);
        }
      }),
    );
    return this.prometheus.metrics();
  }
}

async function withDeadline<R>(work: () => Promise<R>): Promise<R> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not read within ${READ_MS_MAX} ms`)), READ_MS_MAX);
  try {
    return await Promise.race([work(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
