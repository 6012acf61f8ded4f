interface SuggestionsProps {
  /** What the field names in its `list`. */
  readonly id: string;
  readonly values: readonly string[];
}

/** What a text field offers while it is typed in; nothing without values. */
export function Suggestions({ id, values }: SuggestionsProps) {
  if (values.length === 0) return null;
  return (
    <datalist id={id}>
      {values.map((each) => (
        <option key={each} value={each} />
      ))}
    </datalist>
  );
}
