from sklearn.datasets import fetch_california_housing
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPLinearRegressor, PrivacyAccountant

X, y = fetch_california_housing(return_X_y=True)  # incomes, ages, counts, degrees: as they are
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

accountant = PrivacyAccountant(epsilon=2.0, delta=1e-6, path="housing.ledger")  # their budget
model = DPLinearRegressor(epsilon=1.0, delta=1e-7, accountant=accountant).fit(X_train, y_train)

plain = LinearRegression().fit(X_train, y_train)
scores = [r2_score(y_test, found.predict(X_test)) for found in (model, plain)]
print("R² {:.3f}, without privacy {:.3f}".format(*scores))
print(model.privacy_event_)
print(accountant.spent())
