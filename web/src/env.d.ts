declare module "virtual:worker" {
  const code: string;
  export default code;
}
declare module "*.css";

/// Scripts of the report (crates/report/assets), which the page has before this one.
declare const anabranchChart: {
  places(systems: string[], figures: unknown[]): Map<string, number>;
};
/// Lets a table be sorted and filtered.
declare const anabranchTable: (box: HTMLElement) => void;
declare const anabranchDrawing: {
  /// The part of the time that figures show together.
  Times: new (figures: unknown[]) => { renew(figures: unknown[]): void };
  Drawing: new (element: HTMLElement, figure: unknown, places: Map<string, number>, theme: () => "light" | "dark", times: object) => {
    legend(): void;
    draw(): void;
    save(kind: string): Promise<void>;
    figure: unknown;
    chart: HTMLElement;
    width: number;
    view?: { finalize(): void };
  };
};
