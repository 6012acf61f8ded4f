import { listChecks } from './list-checks.ts';
import { operationChecks } from './operation-checks.ts';
import { rowChecks } from './row-checks.ts';
import { shapeChecks } from './shape-checks.ts';
import type { CrudCheck } from './subject.ts';
import { tenantChecks } from './tenant-checks.ts';
import { writeChecks } from './write-checks.ts';

/** What is tested of every resource. */
export const crudChecks: readonly CrudCheck[] = [
  ...rowChecks,
  ...tenantChecks,
  ...listChecks,
  ...shapeChecks,
  ...writeChecks,
  ...operationChecks,
];
