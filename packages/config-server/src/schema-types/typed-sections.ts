import type { PreparedSection } from '../section/section.ts';
import type { TypedSection } from './application-types.ts';

/** What types are made from: the documents as they would be served, and the schemas they were checked with. */
export function typedSections(prepared: ReadonlyMap<string, PreparedSection>): TypedSection[] {
  return [...prepared.values()].map(({ definition, loaded }) => ({
    application: definition.application,
    document: loaded.document,
    schema: loaded.schema && new TextDecoder().decode(loaded.schema),
  }));
}
