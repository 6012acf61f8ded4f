import type { AdminChart, AdminTone } from '../api/shapes.ts';

export interface SeriesLook {
  readonly colour: string;
  /** Lines are told apart without colour, too. */
  readonly dash: string | undefined;
  readonly opacity: number;
}

const DASHES = [undefined, '6 4', '2 4'];
const OPACITIES = [1, 0.7, 0.5];

/** Series of one tone share its colour and differ in strength and dash. */
export function looks(series: AdminChart['series']): SeriesLook[] {
  const seen = new Map<AdminTone, number>();
  return series.map(({ tone }) => {
    const turn = seen.get(tone) ?? 0;
    seen.set(tone, turn + 1);
    return { colour: `var(--tone-${tone})`, dash: DASHES[turn % DASHES.length], opacity: OPACITIES[turn % OPACITIES.length] ?? 1 };
  });
}
