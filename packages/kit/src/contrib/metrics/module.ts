import type { App, Module } from '../../app/declare/module.ts';
import { metricsController } from './controller.ts';
import { databaseMetrics } from './database-metrics.ts';
import { erasureMetrics } from './erasure-metrics.ts';
import { HttpMetrics, httpMetrics } from './http-metrics.ts';
import { readMetricsOptions, type MetricsOptions } from './options.ts';
import { prometheus, PrometheusRegistry } from './prometheus-registry.ts';
import { startScrapeServer, type ScrapeServer } from './scrape-server.ts';

/**
 * Metrics for Prometheus: of requests, databases, the process, and what the other modules declare. Never readable by everyone by default.
 *
 * @example
 * ```ts
 * createApp({ modules: [metrics({ port: 9464 })], mount });
 * ```
 */
export function metrics(options: MetricsOptions): Module {
  const settings = readMetricsOptions(options);
  let app: App | undefined;
  const registry = new PrometheusRegistry((metric, error) =>
    app?.log.warn({ err: error, metric }, `the metric ${metric} could not be read`),
  );
  let http: HttpMetrics | undefined;
  let watchDatabases: (() => () => void) | undefined;
  let stopWatching: (() => void) | undefined;
  let server: ScrapeServer | undefined;
  return {
    name: 'metrics',
    middleware: [httpMetrics(() => http)],
    ...(settings.route === undefined ? {} : { mount: { [settings.route.path]: metricsController(registry, settings.route) } }),
    provides(created) {
      app = created;
      return { metrics: registry };
    },
    metrics(declared, created) {
      http = new HttpMetrics(declared, created.routes, settings.tenants);
      watchDatabases = databaseMetrics(declared, () => created.databases);
      if (created.modules.some(({ name }) => name === 'personal' || name === 'tenants')) erasureMetrics(declared, created);
    },
    setup() {
      stopWatching = watchDatabases?.();
    },
    async monitor({ log }) {
      if (settings.process) prometheus().collectDefaultMetrics({ register: registry.prometheus });
      if (settings.listen === undefined) return undefined;
      server = await startScrapeServer(registry, settings.listen, log);
      log.info({ url: server.url }, `metrics for Prometheus at ${server.url}`);
      return `Metrics for Prometheus: ${server.url}`;
    },
    async stop() {
      stopWatching?.();
      await server?.close();
      server = undefined;
    },
  };
}
