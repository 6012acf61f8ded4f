import type { MetricRegistry } from '../../observe/metric-registry.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { firingAlerts } from './alert-store.ts';
import { checkAlerts } from './check-alerts.ts';

/** Checks the alerts while the process serves. */
export class AlertWatch {
  readonly #site: AdminSite;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;

  constructor(site: AdminSite) {
    this.#site = site;
  }

  start(): void {
    const { alerts } = this.#site.settings;
    if (alerts === null) return;
    const check = (): void => {
      this.#checking ??= this.#check().finally(() => {
        this.#checking = undefined;
      });
    };
    // Processes that began at different times would check up to one interval late: each looks more often than it checks.
    this.#timer = setInterval(check, Math.ceil(alerts.everyMs / 4)).unref();
    check();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#checking;
  }

  async #check(): Promise<void> {
    const { settings, app } = this.#site;
    try {
      if (settings.alerts !== null) await checkAlerts(this.#site, settings.alerts);
    } catch (error) {
      app.log.error({ err: error }, 'admin: could not check the alerts; they are checked again after the interval');
    }
  }

  declareMetrics(registry: MetricRegistry): void {
    if (this.#site.settings.alerts === null) return;
    registry.gauge({
      name: 'kit_admin_alerts',
      help: '1 for each alert of the admin site that fires.',
      labels: { alert: { max: 100 }, severity: ['bad', 'warning'] },
      read: async () =>
        (await firingAlerts(this.#site.app.db)).map(({ name, severity }) => ({ labels: { alert: name, severity }, value: 1 })),
    });
  }
}
