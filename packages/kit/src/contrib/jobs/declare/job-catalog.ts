import { isJob, type JobDefinition } from './job.ts';

const DEFAULT_CONCURRENCY = 10;

/** The jobs of an application by name and alias, and its queues. */
export class JobCatalog {
  readonly definitions: readonly JobDefinition[];
  readonly #byName = new Map<string, JobDefinition>();
  readonly #concurrency = new Map<string, number>();

  /** Throws every fault at once. */
  constructor(definitions: readonly JobDefinition[]) {
    const faults: string[] = [];
    this.definitions = Object.freeze([...definitions]);
    for (const [index, definition] of definitions.entries()) {
      if (!isJob(definition)) {
        faults.push(`jobs[${index}] is not a job; declare it with job(name, options)`);
        continue;
      }
      this.#addNames(definition, faults);
      this.#addQueue(definition, faults);
    }
    if (faults.length > 0) throw new TypeError(`jobs(): ${faults.join('; ')}.`);
  }

  find(name: string): JobDefinition | undefined {
    return this.#byName.get(name);
  }

  /** Every name and alias with the queue of its job. */
  get names(): readonly { readonly name: string; readonly queue: string }[] {
    return [...this.#byName].map(([name, { queue }]) => ({ name, queue }));
  }

  get queues(): readonly string[] {
    return [...new Set(this.definitions.map(({ queue }) => queue))];
  }

  concurrencyOf(queue: string): number {
    return this.#concurrency.get(queue) ?? DEFAULT_CONCURRENCY;
  }

  #addNames(definition: JobDefinition, faults: string[]): void {
    for (const name of [definition.name, ...definition.aliases]) {
      const other = this.#byName.get(name);
      if (other !== undefined) faults.push(`"${name}" is the name of two jobs, ${other.name} and ${definition.name}`);
      this.#byName.set(name, definition);
    }
  }

  #addQueue({ name, queue, concurrency }: JobDefinition, faults: string[]): void {
    if (concurrency === undefined) return;
    const said = this.#concurrency.get(queue);
    if (said !== undefined && said !== concurrency)
      faults.push(
        `${name}: concurrency is ${concurrency}, but another job of the queue "${queue}" says ${said}; it is one number per queue`,
      );
    this.#concurrency.set(queue, concurrency);
  }
}
