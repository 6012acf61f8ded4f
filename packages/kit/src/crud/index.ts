export type { BulkOptions } from './bulk.ts';
export { CrudController } from './controller.ts';
export type { CrudCaller } from './crud-caller.ts';
export { crudOf, type CrudProgram, type ProgramCaller } from './crud-of.ts';
export type { CrudClass, CrudOptions, RowWriter } from './crud-options.ts';
export { crudErrors } from './errors.ts';
export type { ExportOptions, FileFormat } from './export.ts';
export { visibleTo, writableBy, type FieldRule } from './field-rule.ts';
export { filter, type CustomFilter } from './filter.ts';
export { avg, count, countDistinct, max, min, sum, type Metric, type MetricKind } from './metric.ts';
export type { StatsOptions } from './stats.ts';
export type { ImportOptions, ImportResult } from './import.ts';
export type { ListPage } from './list.ts';
export type { CountMode, PageOptions } from './page-options.ts';
export { many, one, type ManyOptions, type Relation, type Relations, type ToMany, type ToOne } from './relation.ts';
export {
  resource,
  type Change,
  type ChangeEvent,
  type Resource,
  type ResourceOptions,
  type Transition,
  type Via,
  type WriteContext,
} from './resource.ts';
export { fullText, type FullTextOptions, type SearchBackend, type SearchContext } from './search.ts';
export type { AccessContext, AccessNarrowing, AccessPage, AccessWrite, RowAccess } from './row-access.ts';
