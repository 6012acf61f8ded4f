import type { Db } from '../../../db/engine/db.ts';
import { isUniqueViolation } from '../../../db/engine/constraint-violation.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { jobErrors } from '../errors.ts';
import { permanent } from '../declare/failure.ts';
import type { Jobs } from '../rows/jobs.ts';
import { STEP_NAME_LENGTH_MAX } from '../models.ts';
import { ClaimLost } from './claim-lost.ts';
import type { Claim } from './claim-store.ts';
import { payloadText } from './payload-text.ts';
import { findStep, insertStep, stepsOf } from './step-store.ts';
import { jsonValue } from '../../../db/values/json-value.ts';

/** The recorded steps of one job, as one run of it sees them. */
export class RecordedSteps {
  readonly #jobs: Jobs;
  readonly #claim: Claim;
  readonly #assertOurs: () => void;
  readonly #used = new Set<string>();
  #recorded: Promise<Map<string, string | null>> | undefined;

  constructor(jobs: Jobs, claim: Claim, assertOurs: () => void) {
    this.#jobs = jobs;
    this.#claim = claim;
    this.#assertOurs = assertOurs;
  }

  async run<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    const known = await this.#begin(name);
    if (known !== undefined) return known.value as T;
    const value = await work();
    const text = payloadText(stepNamed(name), value);
    if (!(await this.#record(this.#jobs.database, name, text))) throw new ClaimLost();
    return valueOf(text) as T;
  }

  async commit<T>(name: string, work: (tx: Db) => Promise<T>): Promise<T> {
    const known = await this.#begin(name);
    if (known !== undefined) return known.value as T;
    try {
      return await this.#jobs.database.transaction(async (tx) => {
        const text = payloadText(stepNamed(name), await work(tx));
        this.#assertOurs();
        // The last statement: the job is not held while the work is done.
        if (!(await this.#record(tx, name, text))) throw new ClaimLost();
        return valueOf(text) as T;
      });
    } catch (error) {
      // Recorded by a run that lost its claim to us, or to the one we took it from: its effects are there, ours were rolled back.
      if (!isKitError(error, 'commit_unknown') && !isUniqueViolation(error)) throw error;
      const saved = await findStep(this.#jobs.database, this.#claim.id, name);
      if (saved === undefined) throw error;
      return valueOf(saved.result) as T;
    }
  }

  async #begin(name: string): Promise<{ readonly value: unknown } | undefined> {
    if (typeof name !== 'string' || name === '' || name.length > STEP_NAME_LENGTH_MAX || name.includes('\0') || !name.isWellFormed())
      throw permanent(new TypeError(`The name of a step is a string of 1 to ${STEP_NAME_LENGTH_MAX} characters.`));
    if (this.#used.has(name))
      throw permanent(jobErrors.step_repeated({ message: `Two steps of one run are called ${JSON.stringify(name)}.` }));
    this.#used.add(name);
    this.#assertOurs();
    this.#recorded ??= this.#load();
    const recorded = await this.#recorded;
    const text = recorded.get(name);
    return text === undefined ? undefined : { value: valueOf(text) };
  }

  async #load(): Promise<Map<string, string | null>> {
    return new Map((await stepsOf(this.#jobs.database, this.#claim.id)).map(({ name, result }) => [name, result]));
  }

  #record(db: Db, name: string, result: string | null): Promise<boolean> {
    const { attempts: attempt } = this.#claim;
    return insertStep(db, this.#claim, { name, result, attempt, finishedAt: this.#jobs.clock.now() });
  }
}

const stepNamed = (name: string): string => `The result of the step ${JSON.stringify(name)}`;

/** What every later attempt gets too: a date is the same string from the first attempt on. */
function valueOf(text: string | null): unknown {
  return text === null ? undefined : jsonValue(text);
}
