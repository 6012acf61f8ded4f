import type { StandardSchemaV1 } from '@standard-schema/spec';

/** A Standard Schema (https://standardschema.dev) with this output: Zod, Valibot, ArkType and others satisfy it. */
export type StandardSchema<Output = unknown> = StandardSchemaV1<unknown, Output>;
export type StandardIssue = StandardSchemaV1.Issue;
