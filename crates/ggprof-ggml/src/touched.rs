//! How much of its tensors an op touches.

/// What an op reads and writes, where it is less than all of its sources and its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// All sources, and the output.
    All,
    /// Of the first source as many rows as the output has; the second one says which.
    RowsOfTheOutput,
    /// Of the output, a view of the last source, as many rows as the first source has; the second
    /// one says which.
    RowsOfTheFirstSource,
    /// The last source is where the output goes, and is not read.
    AllButTheTarget,
    /// Of the first source those matrices that the third one selects.
    SelectedMatrices,
}

pub fn touched(op_name: &str) -> Touched {
    match op_name {
        "GET_ROWS" => Touched::RowsOfTheOutput,
        "SET_ROWS" => Touched::RowsOfTheFirstSource,
        "CPY" => Touched::AllButTheTarget,
        "MUL_MAT_ID" => Touched::SelectedMatrices,
        _ => Touched::All,
    }
}
