import type { App } from '../../app/declare/module.ts';
import { countErasures } from '../../db/subjects/erasure-state.ts';
import { SUBJECT_KINDS } from '../../db/subjects/models.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';

/** Erasures of people and tenants that did not succeed yet: a legal duty that somebody must look at. Those that a legal hold stops are as they should be. */
export function erasureMetrics(registry: MetricRegistry, app: App): void {
  const gauge = (of: 'failing' | 'held', help: string): void =>
    registry.gauge({
      name: `kit_erasures_${of}`,
      help,
      labels: { kind: SUBJECT_KINDS },
      read: async () => (await countErasures(app.db)).map((each) => ({ labels: { kind: each.kind }, value: each[of] })),
    });
  gauge('failing', 'Erasures of people and tenants whose last attempt failed.');
  gauge('held', 'Erasures of people and tenants whose time has come, and which a legal hold stops or keeps from their end.');
}
