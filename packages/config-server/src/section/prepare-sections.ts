import type { ServerConfig } from '../config/config.ts';
import type { Problem } from '../config/problem.ts';
import { LoadFailure } from '../document/load-failure.ts';
import type { FileAccess } from '../file-access.ts';
import { sectionKey, type SectionDefinition } from './definition.ts';
import type { SectionSecrets } from './load.ts';
import { prepareSection, type PreparedSection } from './section.ts';

/** Enough to keep node's four I/O threads busy, but 1,000 sections do not open 1,000 files at once. */
const LOADS_MAX = 32;

export interface Preparation {
  readonly prepared: ReadonlyMap<string, PreparedSection>;
  readonly problems: readonly Problem[];
}

/** Loads the given sections of a configuration; those that fail become problems that name the section and the source. */
export async function prepareSections(
  config: ServerConfig,
  definitions: readonly SectionDefinition[],
  access: FileAccess,
  secretsOf: (definition: SectionDefinition) => SectionSecrets | undefined = () => config.secrets,
): Promise<Preparation> {
  const prepared = new Map<string, PreparedSection>();
  const failed = new Map<SectionDefinition, LoadFailure>();
  const load = async (definition: SectionDefinition): Promise<void> => {
    try {
      const key = sectionKey(definition.application, definition.profile);
      prepared.set(key, await prepareSection(definition, config.environment, access, secretsOf(definition)));
    } catch (error) {
      if (!(error instanceof LoadFailure)) throw error;
      failed.set(definition, error);
    }
  };
  const pending = definitions.values();
  const worker = async (): Promise<void> => {
    for (const definition of pending) await load(definition);
  };
  await Promise.all(Array.from({ length: Math.min(LOADS_MAX, definitions.length) }, worker));
  return { prepared, problems: problemsOf(config, failed) };
}

/** One problem per section, but a repository that cannot be used is one problem of all sections that read from it. */
function problemsOf(config: ServerConfig, failed: ReadonlyMap<SectionDefinition, LoadFailure>): Problem[] {
  const repositories = new Map<string, Problem>();
  const sections: Problem[] = [];
  for (const [definition, failure] of failed) {
    if (failure.kind !== 'git') sections.push(sectionProblem(config, definition, failure));
    else repositories.set(failure.message, { key: 'git', message: `the repository cannot be read: ${failure.message}` });
  }
  return [...repositories.values(), ...sections];
}

function sectionProblem(config: ServerConfig, definition: SectionDefinition, failure: LoadFailure): Problem {
  const section = sectionKey(definition.application, definition.profile);
  return {
    key: config.sectionTables.get(definition) ?? 'server.sections',
    message: `section ${section} cannot load: ${failure.origin}: ${failure.message}`,
  };
}
