import type { App } from '../../app/declare/module.ts';
import { SUBJECT_KINDS } from '../../db/subjects/models.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';

/** Erasures of people and tenants that did not succeed yet: a legal duty that somebody must look at. */
export function erasureMetrics(registry: MetricRegistry, app: App): void {
  registry.gauge({
    name: 'kit_erasures_failing',
    help: 'Erasures of people and tenants whose last attempt failed.',
    labels: { kind: SUBJECT_KINDS },
    read: async () => {
      const found = await app.db.query<{ kind: string; n: number | bigint }>(
        `select kind, count(*) as n from kit_erasures where state <> 'finished' and state <> 'cancelled' and failures > 0 group by kind`,
      );
      return SUBJECT_KINDS.map((kind) => ({ labels: { kind }, value: Number(found.find((each) => each.kind === kind)?.n ?? 0) }));
    },
  });
}
