import type { Clock } from '../clock.ts';
import { readServerConfig, type ServerConfig } from '../config/config.ts';
import { StartRefusal, describeProblem, type Problem } from '../config/problem.ts';
import type { LoadFailure } from '../document/load-failure.ts';
import { synchronousFiles, asynchronousFiles } from '../file-access.ts';
import type { Roster } from '../http/service.ts';
import { TokenTable } from '../http/token-table.ts';
import { sameSecrets } from '../secrets/secrets.ts';
import { arrivalPaths, sameDefinition, sectionKey, watchedPaths, type SectionDefinition } from '../section/definition.ts';
import { Limiter } from '../section/limiter.ts';
import type { SectionSecrets } from '../section/load.ts';
import { prepareSections, type Preparation } from '../section/prepare-sections.ts';
import { readSources } from '../section/read-sources.ts';
import { Section } from '../section/section.ts';
import { Debounce } from '../watch/debounce.ts';
import { FileWatcher } from '../watch/file-watcher.ts';

/** How the rest of the server learns about changes. */
export interface RosterEvents {
  readonly onInstall: (section: Section) => void;
  /** After a valid edit of server.toml. */
  readonly onConfig: (after: ServerConfig) => void;
  readonly log: (line: string) => void;
}

const RELOADS_MAX = 32;

/**
 * What the roster does about server.toml.
 * - `current`: the file is in service.
 * - `applying`: an edit is being prepared; the sections it redefines are not reloaded under the old definition, which it would undo.
 * - `refused`: the last edit was invalid.
 * - `closed`: nothing is applied any more.
 * When one of the `awaited` files changes, server.toml is read again.
 */
type State =
  | Settled
  | { readonly name: 'applying'; readonly redefined: ReadonlySet<string>; readonly awaited: Set<string>; readonly before: Settled }
  | { readonly name: 'closed' };
/** The outcome of the last edit that was read to its end. */
type Settled = { readonly name: 'current' } | { readonly name: 'refused'; readonly awaited: ReadonlySet<string> };

const CURRENT: Settled = { name: 'current' };

/** The sections and clients in service, kept up to date with server.toml and the files it names. */
export class LiveRoster {
  readonly #clock: Clock;
  readonly #events: RosterEvents;
  readonly #watcher: FileWatcher;
  readonly #reloads = new Limiter(RELOADS_MAX);
  /** The value at the start: an edit of it, also to 0, takes effect at the next start. */
  readonly #debounceMs: number;
  readonly #configDebounce: Debounce;
  readonly #sectionDebounces = new Map<string, Debounce>();
  /** Which sections a path belongs to. */
  #dependants = new Map<string, Set<string>>();
  /** Files that the values of a section refer to, found when it was last loaded. */
  readonly #references = new Map<string, readonly string[]>();
  /** The configurations whose files are watched: two while an edit is being applied. */
  #watched: readonly ServerConfig[] = [];
  /** Generations of removed sections: one that is added again continues its numbers. */
  readonly #retired = new Map<string, number>();
  #config: ServerConfig;
  #current: Roster;
  #state: State = CURRENT;
  #reconfiguring: Promise<void> = Promise.resolve();

  private constructor(config: ServerConfig, clock: Clock, events: RosterEvents) {
    this.#config = config;
    this.#clock = clock;
    this.#events = events;
    this.#current = { tokens: new TokenTable([]), sections: new Map(), maxStreamConnections: 0, hasOperators: false };
    this.#debounceMs = config.watchDebounceMs;
    this.#configDebounce = new Debounce(config.watchDebounceMs, clock, () => void this.#reconfigure());
    this.#watcher = new FileWatcher({
      onChange: (path) => this.#touched(path),
      onProblem: (directory, code) => events.log(`config-server: ${directory} cannot be watched (${code}); changes there need a SIGHUP`),
    });
  }

  /** Watches first and loads second, so that no change in between is lost. */
  static async open(config: ServerConfig, clock: Clock, events: RosterEvents): Promise<LiveRoster> {
    const roster = new LiveRoster(config, clock, events);
    roster.#watch(config);
    const preparation = await prepareSections(config, config.sections, synchronousFiles, roster.#secretsFor(config));
    if (preparation.problems.length > 0) {
      roster.close();
      throw new StartRefusal(config.path, preparation.problems);
    }
    roster.#commit(config, preparation);
    return roster;
  }

  get current(): Roster {
    return this.#current;
  }

  get healthy(): boolean {
    if (this.#settled().name === 'refused') return false;
    for (const section of this.#current.sections.values()) if (!section.healthy) return false;
    return true;
  }

  /** Reads server.toml again and then every section, changed or not. */
  async reloadEverything(): Promise<void> {
    if (this.#debounceMs === 0) {
      this.#events.log('config-server: watch_debounce_ms is 0, so nothing is reloaded; restart to take in changes');
      return;
    }
    this.#watcher.recheck();
    await this.#reconfigure();
    const now = this.#clock.now();
    await Promise.all([...this.#current.sections.values()].map((section) => this.#reload(section, 'manual', now)));
  }

  close(): void {
    this.#state = { name: 'closed' };
    this.#watcher.close();
    this.#configDebounce.cancel();
    for (const debounce of this.#sectionDebounces.values()) debounce.cancel();
  }

  #settled(): Settled {
    const state = this.#state;
    return state.name === 'applying' ? state.before : state.name === 'closed' ? CURRENT : state;
  }

  #isClosed(): boolean {
    return this.#state.name === 'closed';
  }

  /** Files of an edit that was refused, or that is being prepared and may read them too early: one of them may be what fixes it. */
  #awaited(): ReadonlySet<string> {
    return 'awaited' in this.#state ? this.#state.awaited : new Set();
  }

  #touched(path: string): void {
    if (this.#watched.some(({ inputs }) => inputs.includes(path)) || this.#awaited().has(path)) this.#configDebounce.touch();
    for (const key of this.#dependants.get(path) ?? []) this.#debounceOf(key).touch();
  }

  #debounceOf(key: string): Debounce {
    let debounce = this.#sectionDebounces.get(key);
    if (debounce === undefined) {
      debounce = new Debounce(this.#debounceMs, this.#clock, (since) => this.#due(key, since));
      this.#sectionDebounces.set(key, debounce);
    }
    return debounce;
  }

  #due(key: string, since: number): void {
    const section = this.#current.sections.get(key);
    // It is being loaded under a new definition, or for the first time, and may have read the file before this change: try again later.
    const isRedefined = this.#state.name === 'applying' && this.#state.redefined.has(key);
    if (section === undefined || isRedefined) this.#debounceOf(key).touch();
    else void this.#reload(section, 'file-changed', since);
  }

  async #reload(section: Section, reason: 'file-changed' | 'manual', since: number): Promise<void> {
    const wasHealthy = section.healthy;
    const outcome = await this.#reloads.run(() => section.reload(reason, since, () => this.#clock.now()));
    if (this.#isClosed() || this.#current.sections.get(section.key) !== section) return;
    const { generation } = section.installed;
    if ('failure' in outcome) {
      const { kind, origin, message } = outcome.failure;
      this.#events.log(
        `config-server: section ${section.key} did not reload (${kind}): ${origin}: ${message}; generation ${generation} stays in service`,
      );
    } else if (outcome.installed) {
      const { commit } = section.status(since);
      this.#events.log(
        `config-server: section ${section.key} is at generation ${generation}${commit === undefined ? '' : `, commit ${commit.id}`}`,
      );
      this.#events.onInstall(section);
    } else if (!wasHealthy && section.healthy) {
      this.#events.log(`config-server: section ${section.key} reloads again; its document is that of generation ${generation}`);
    }
  }

  /** One edit at a time: the last one must win. */
  #reconfigure(): Promise<void> {
    this.#reconfiguring = this.#reconfiguring
      .then(() => this.#readAgain())
      .catch(() => this.#keep([{ key: '', message: 'could not be read again' }], []));
    return this.#reconfiguring;
  }

  /** Applies server.toml as it is now, as a whole or not at all. */
  async #readAgain(): Promise<void> {
    const before = this.#config;
    const unsettled = await settled(before.inputs);
    if (this.#isClosed()) return undefined;
    const { config, problems, missing } = readServerConfig(before.path, before.environment);
    // With problems of its own, those are reported. Without, it may be a part of an edit: the change that follows is read again.
    if (unsettled !== undefined && problems.length === 0) return this.#keep([unsettled], config?.inputs ?? []);
    if (config === undefined || problems.length > 0) return this.#keep(problems, [...(config?.inputs ?? []), ...missing]);
    const added = config.sections.filter((definition) => this.#isNew(definition));
    const preparation = await this.#prepare(config, added);
    if (this.#isClosed()) return undefined;
    if (preparation.problems.length > 0) return this.#keep(preparation.problems, this.#awaitedBy(config, config.sections));
    if (this.#settled().name === 'refused') this.#events.log(`config-server: ${config.path} is valid again`);
    this.#state = CURRENT;
    const installed = this.#commit(config, preparation);
    this.#watch(config);
    this.#events.onConfig(config);
    for (const section of installed) this.#events.onInstall(section);
    if (!sameSecrets(before.secrets, config.secrets)) this.#reopen(config, preparation);
    return undefined;
  }

  /** Sections that the edit did not load are loaded again with the new identities and mounts. One that fails keeps its document. */
  #reopen(config: ServerConfig, { prepared }: Preparation): void {
    const secretsOf = this.#secretsFor(config);
    for (const section of this.#current.sections.values()) {
      if (prepared.has(section.key)) continue;
      section.useSecrets(secretsOf(section.definition));
      void this.#reload(section, 'file-changed', this.#clock.now());
    }
  }

  #secretsFor({ secrets }: ServerConfig): (definition: SectionDefinition) => SectionSecrets | undefined {
    return ({ application, profile }) =>
      secrets && { ...secrets, onReferences: (paths) => this.#followReferences(sectionKey(application, profile), paths) };
  }

  /** Watches the files that a section refers to, and no longer those that it does not. */
  #followReferences(key: string, found: readonly string[]): void {
    const before = this.#references.get(key) ?? [];
    if (this.#isClosed() || (before.length === 0 && found.length === 0)) return;
    // An edit may still be refused: then the section goes on with the files of its old definition.
    const isRedefined = this.#state.name === 'applying' && this.#state.redefined.has(key);
    if (this.#state.name === 'applying' && isRedefined) for (const path of found) this.#state.awaited.add(path);
    const paths = isRedefined ? [...new Set([...before, ...found])] : found;
    this.#references.set(key, paths);
    for (const path of paths) this.#dependants.set(path, (this.#dependants.get(path) ?? new Set()).add(key));
    if (this.#debounceMs !== 0) this.#watcher.add(paths);
    if (before.some((path) => !paths.includes(path))) this.#watch(...this.#watched);
  }

  /** Every file whose change may change a section, also those that its values refer to. */
  #pathsOf(definition: SectionDefinition): readonly string[] {
    const { application, profile } = definition;
    return [...watchedPaths(definition), ...(this.#references.get(sectionKey(application, profile)) ?? [])];
  }

  /** Every file that may be what an edit is waiting for. */
  #awaitedBy({ inputs }: ServerConfig, sections: readonly SectionDefinition[]): readonly string[] {
    return [...inputs, ...sections.flatMap((section) => [...this.#pathsOf(section), ...arrivalPaths(section)])];
  }

  async #prepare(config: ServerConfig, added: readonly SectionDefinition[]): Promise<Preparation> {
    const before = this.#settled();
    this.#state = {
      name: 'applying',
      redefined: new Set(added.map(({ application, profile }) => sectionKey(application, profile))),
      awaited: new Set(this.#awaitedBy(config, added)),
      before,
    };
    // Watched before it is loaded, so that no change in between is lost.
    this.#watch(config, this.#config);
    try {
      return await prepareSections(config, added, asynchronousFiles, this.#secretsFor(config));
    } finally {
      if (!this.#isClosed()) this.#state = before;
    }
  }

  /** Keeps the running configuration. Files that could fix the refused edit are watched: one of them may be about to appear. */
  #keep(problems: readonly Problem[], awaited: readonly string[]): void {
    if (this.#isClosed()) return;
    this.#state = { name: 'refused', awaited: new Set(awaited) };
    this.#watch(this.#config);
    for (const problem of problems) {
      this.#events.log(`config-server: the running configuration stays in service: ${describeProblem(this.#config.path, problem)}`);
    }
  }

  #isNew(definition: SectionDefinition): boolean {
    const running = this.#current.sections.get(sectionKey(definition.application, definition.profile));
    return running === undefined || !sameDefinition(running.definition, definition);
  }

  /** Puts a configuration into service in one assignment. Returns the running sections whose document changed with it. */
  #commit(config: ServerConfig, { prepared }: Preparation): Section[] {
    const now = this.#clock.now();
    const sections = new Map<string, Section>();
    const changed: Section[] = [];
    for (const { application, profile } of config.sections) {
      const key = sectionKey(application, profile);
      const running = this.#current.sections.get(key);
      const fresh = prepared.get(key);
      if (running !== undefined && fresh !== undefined && running.adopt(fresh, now)) changed.push(running);
      sections.set(key, running ?? new Section(fresh!, (this.#retired.get(key) ?? 0) + 1, now));
    }
    for (const [key, section] of this.#current.sections) {
      if (!sections.has(key)) this.#retired.set(key, section.installed.generation);
    }
    this.#config = config;
    this.#current = {
      tokens: new TokenTable(config.clients),
      sections,
      maxStreamConnections: config.maxStreamConnections,
      hasOperators: config.clients.some((client) => client.operator),
    };
    return changed;
  }

  #watch(...configs: readonly ServerConfig[]): void {
    const sections = configs.flatMap((config) => config.sections);
    const keys = new Set(sections.map((section) => sectionKey(section.application, section.profile)));
    for (const key of this.#references.keys()) if (!keys.has(key)) this.#references.delete(key);
    this.#watched = configs;
    this.#dependants = new Map();
    for (const section of sections) {
      const key = sectionKey(section.application, section.profile);
      for (const path of this.#pathsOf(section)) this.#dependants.set(path, (this.#dependants.get(path) ?? new Set()).add(key));
    }
    for (const [key, debounce] of this.#sectionDebounces) {
      if (keys.has(key)) continue;
      debounce.cancel();
      this.#sectionDebounces.delete(key);
    }
    if (this.#debounceMs === 0) return;
    this.#watcher.watch([...configs.flatMap((config) => config.inputs), ...this.#dependants.keys(), ...this.#awaited()]);
  }
}

/** Waits until files that are being written are complete: half of a server.toml may be valid with half of the clients. */
async function settled(paths: readonly string[]): Promise<Problem | undefined> {
  // A folder of identities is listed with its files.
  const files = paths.filter((path) => !path.endsWith('/')).map((path) => ({ listed: path, path, optional: true }));
  try {
    await readSources(files, asynchronousFiles);
    return undefined;
  } catch (error) {
    const { origin, message } = error as LoadFailure;
    return { key: '', message: `${origin}: ${message}` };
  }
}
