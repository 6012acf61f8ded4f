import { variablesOf, type Environment, type Variable } from '../document/environment.ts';
import type { FailureKind, LoadFailure } from '../document/load-failure.ts';
import type { EncodedDocument } from '../document/encode.ts';
import type { Layers } from '../document/explain.ts';
import { sameValue, type Table } from '../document/value.ts';
import { asynchronousFiles, type FileAccess } from '../file-access.ts';
import type { Commit } from '../git/commit.ts';
import { sectionKey, type SectionDefinition } from './definition.ts';
import { History, type HistoryEntry } from './history.ts';
import { loadDocument, type LoadedDocument, type SectionSecrets } from './load.ts';
import type { Reason } from './reason.ts';

export interface RecordedFailure {
  readonly kind: FailureKind;
  readonly origin: string;
  /** The key path of a secret that failed; absent for other failures. */
  readonly key?: string;
  readonly at: number;
}

/** A document in service. A request uses one of these throughout, so a reload cannot mix two documents in one response. */
export interface Installed {
  readonly generation: number;
  readonly document: Table;
  readonly encoded: EncodedDocument;
  readonly installedAt: number;
}

export interface SectionStatus {
  readonly generation: number;
  readonly healthy: boolean;
  readonly consecutiveFailures: number;
  readonly staleForMs: number;
  readonly installedAt: number;
  readonly lastReason: Reason;
  readonly lastFailure: RecordedFailure | null;
  /** The commit of the last load that succeeded; undefined when no file comes from Git. */
  readonly commit: Commit | undefined;
}

/** A section's document loaded under a definition, not in service yet. */
export interface PreparedSection {
  readonly definition: SectionDefinition;
  readonly variables: readonly Variable[];
  readonly secrets: SectionSecrets | undefined;
  readonly loaded: LoadedDocument;
}

/** Loads a section for the first time, or under a new definition. A LoadFailure here means it cannot be served as defined. */
export async function prepareSection(
  definition: SectionDefinition,
  environment: Environment,
  access: FileAccess,
  secrets?: SectionSecrets,
): Promise<PreparedSection> {
  const variables = variablesOf(environment, definition.envPrefix);
  return { definition, variables, secrets, loaded: await loadDocument(definition, variables, access, secrets) };
}

export type ReloadOutcome = { readonly installed: boolean } | { readonly failure: LoadFailure };

/** One served section: its document, its origins and the outcome of its last reloads. Always keeps the last good document. */
export class Section {
  readonly key: string;
  #definition: SectionDefinition;
  #variables: readonly Variable[];
  #secrets: SectionSecrets | undefined;
  #installed: Installed;
  #layers: Layers;
  #commit: Commit | undefined;
  readonly #history = new History();
  #lastReason: Reason;
  #lastFailure: RecordedFailure | null = null;
  #consecutiveFailures = 0;
  #staleSince: number | undefined;
  #installsTotal = 1;
  #failuresTotal = 0;
  #loading: Promise<unknown> = Promise.resolve();

  constructor({ definition, variables, secrets, loaded }: PreparedSection, generation: number, now: number) {
    this.key = sectionKey(definition.application, definition.profile);
    this.#definition = definition;
    this.#variables = variables;
    this.#secrets = secrets;
    this.#installed = { generation, document: loaded.document, encoded: loaded.encoded, installedAt: now };
    this.#layers = loaded.layers;
    this.#commit = loaded.commit;
    this.#lastReason = 'initial';
    this.#history.record({ generation, installedAt: now, reason: 'initial', commit: loaded.commit }, undefined, loaded.document);
  }

  get definition(): SectionDefinition {
    return this.#definition;
  }

  get installed(): Installed {
    return this.#installed;
  }

  get layers(): Layers {
    return this.#layers;
  }

  /** The last installed documents, the newest first. */
  get history(): readonly HistoryEntry[] {
    return this.#history.entries;
  }

  get healthy(): boolean {
    return this.#consecutiveFailures === 0;
  }

  get installsTotal(): number {
    return this.#installsTotal;
  }

  get failuresTotal(): number {
    return this.#failuresTotal;
  }

  status(now: number): SectionStatus {
    return {
      generation: this.#installed.generation,
      healthy: this.healthy,
      consecutiveFailures: this.#consecutiveFailures,
      staleForMs: this.#staleSince === undefined ? 0 : Math.max(0, now - this.#staleSince),
      installedAt: this.#installed.installedAt,
      lastReason: this.#lastReason,
      lastFailure: this.#lastFailure,
      commit: this.#commit,
    };
  }

  /** Loads the sources as they are now and installs nothing. */
  dryRun(): Promise<LoadedDocument> {
    const secrets = this.#secrets && { ...this.#secrets, onReferences: () => undefined };
    return loadDocument(this.#definition, this.#variables, asynchronousFiles, secrets);
  }

  /** Reloads one at a time: two reloads that overlapped could install the older reading last. */
  reload(reason: 'file-changed' | 'manual', changedAt: number, now: () => number): Promise<ReloadOutcome> {
    const reloaded = this.#loading.then(() => this.#reload(reason, changedAt, now));
    this.#loading = reloaded;
    return reloaded;
  }

  /** Continues under a new definition of the same section. Returns whether a new document was installed. */
  adopt({ definition, variables, secrets, loaded }: PreparedSection, now: number): boolean {
    this.#definition = definition;
    this.#variables = variables;
    this.#secrets = secrets;
    return this.#accept(loaded, 'file-changed', now);
  }

  /** Opens secrets with other identities, or follows references to other mounts, from the next reload on. */
  useSecrets(secrets: SectionSecrets | undefined): void {
    this.#secrets = secrets;
  }

  async #reload(reason: Reason, changedAt: number, now: () => number): Promise<ReloadOutcome> {
    const definition = this.#definition;
    let loaded: LoadedDocument;
    try {
      loaded = await loadDocument(definition, this.#variables, asynchronousFiles, this.#secrets);
    } catch (error) {
      if (definition !== this.#definition) return { installed: false };
      const failure = error as LoadFailure;
      this.#consecutiveFailures++;
      this.#failuresTotal++;
      this.#staleSince ??= changedAt;
      const key = failure.key === undefined ? {} : { key: failure.key };
      this.#lastFailure = { kind: failure.kind, origin: failure.origin, ...key, at: now() };
      return { failure };
    }
    // A new definition was adopted meanwhile: what was read belongs to the old one.
    if (definition !== this.#definition) return { installed: false };
    return { installed: this.#accept(loaded, reason, now()) };
  }

  #accept(loaded: LoadedDocument, reason: Reason, now: number): boolean {
    const recovered = !this.healthy;
    this.#consecutiveFailures = 0;
    this.#staleSince = undefined;
    // Origins may have changed although no value did.
    this.#layers = loaded.layers;
    this.#commit = loaded.commit;
    const changed = !sameValue(this.#installed.document, loaded.document);
    if (changed) {
      const before = this.#installed.document;
      const generation = this.#installed.generation + 1;
      this.#installed = { generation, document: loaded.document, encoded: loaded.encoded, installedAt: now };
      this.#installsTotal++;
      const entry = { generation, installedAt: now, reason: recovered ? 'recovered' : reason, commit: loaded.commit } as const;
      this.#history.record(entry, before, loaded.document);
    }
    if (recovered) this.#lastReason = 'recovered';
    else if (changed || reason === 'manual') this.#lastReason = reason;
    return changed;
  }
}
