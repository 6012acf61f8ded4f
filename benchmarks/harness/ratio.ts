/** A measured ratio against a goal; the goal is a floor unless `atMost` says it is a ceiling. */
export interface Ratio {
  readonly name: string;
  readonly value: number;
  readonly goal: number;
  readonly atMost?: boolean;
}

export function passes(ratio: Ratio): boolean {
  return ratio.atMost === true ? ratio.value <= ratio.goal : ratio.value >= ratio.goal;
}

/** The machine-readable line: `RATIO <name> <value> goal <value> pass|fail`. */
export function ratioLine(ratio: Ratio): string {
  return `RATIO ${ratio.name} ${ratio.value.toPrecision(4)} goal ${ratio.goal} ${passes(ratio) ? 'pass' : 'fail'}`;
}
