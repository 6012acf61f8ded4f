/** 256 KiB: what was done in the last minute at 1,000 requests with a key per second. */
const SLOTS = 65_536;

/**
 * Which keys this process used lately, so that only those are looked up before a request runs. It is a hint, and may be wrong both ways: a key that
 * it forgot is noticed when its record is stored, and one that it takes for another is looked up without need.
 */
export class RecentKeys {
  #marks: Int32Array | undefined;

  /** `scopeHash` is in hex. */
  add(scopeHash: string): void {
    this.#marks ??= new Int32Array(SLOTS);
    this.#marks[slotOf(scopeHash)] = markOf(scopeHash);
  }

  has(scopeHash: string): boolean {
    return this.#marks !== undefined && this.#marks[slotOf(scopeHash)] === markOf(scopeHash);
  }
}

function slotOf(scopeHash: string): number {
  return Number.parseInt(scopeHash.slice(0, 4), 16) % SLOTS;
}

/** Never 0, which is an empty slot. */
function markOf(scopeHash: string): number {
  return Number.parseInt(scopeHash.slice(4, 12), 16) | 1;
}
