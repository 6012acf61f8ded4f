/** A time as the site's values have it. */
export function iso(time: Date | null | undefined): string | null {
  return time?.toISOString() ?? null;
}
